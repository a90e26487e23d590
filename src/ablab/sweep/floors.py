"""The floor of a loop: the stack as it is, trained on several seeds, with which proposals are compared."""

from dataclasses import dataclass

from ablab.code.differences import other_origin
from ablab.errors import LostError
from ablab.judge.loop import check_noise
from ablab.store.records import Record, now
from ablab.study.loop import Book, Floor
from ablab.sweep.loop_runs import LoopRuns, RunFailedError, stack_in_words

AGAIN = "the same line, typed again, tries it again"


@dataclass
class Floors:
    """The floors of one loop."""

    runs: LoopRuns

    def ensure(self, book: Book, seeds: int | None = None) -> Book:
        """Return the ledger with a floor of the present stack whose runs have ended and are of the present code."""
        wanted = seeds or self.runs.file.loop.floor
        floor, why = self.standing(book)
        if floor is None:
            identity = self.runs.identity_of(book, book.stack)
            floor = Floor(stack=book.stack, identity=identity, seeds=[], at=now(), why=why)
            book = book.model_copy(update={"floors": [*book.floors, floor]})
        if len(floor.seeds) < wanted:
            self.runs.check_left(book, wanted - len(floor.seeds), "the floor")
            more = self.runs.drawn(book, wanted - len(floor.seeds))
            floor = floor.model_copy(update={"seeds": [*floor.seeds, *more]})
            book = self.runs.ledger.write(book.model_copy(update={"floors": [*book.floors[:-1], floor]}))
        cells = self.runs.cells(book, floor.stack, floor.seeds)
        if any(cell.planned.folder.record() is None for cell in cells):
            self.runs.console.say(f"Floor: {len(floor.seeds)} seeds of {stack_in_words(book)} ({why})")
        try:
            self.runs.train(cells)
        except RunFailedError as error:
            raise LostError(f"{self.runs.file.name}: a run of the floor failed: {error}; {AGAIN}") from None
        check_noise(self.runs.file.name, self.scores(book))
        return book

    def standing(self, book: Book) -> tuple[Floor | None, str]:
        """Return the floor of the present stack, if there is one that still holds, and why there is or has to be."""
        first = f"the first of {'the stack' if book.stack else 'the baseline'}"
        floor = book.floors[-1] if book.floors else None
        if floor is None or floor.stack != book.stack:
            return None, first
        if floor.identity != self.runs.identity_of(book, book.stack):
            return None, "the one before is of another recipe: its settings or inputs were edited"
        other = self._other(book, floor)
        return (floor, first) if other is None else (None, f"the one before is of {other}")

    def _other(self, book: Book, floor: Floor) -> str | None:
        """Return the other code or versions that a run of the floor is of, or the device of the newest proposal's."""
        now = self._devices(book)
        for cell in self.runs.cells(book, floor.stack, floor.seeds) if floor.seeds else ():
            record = cell.planned.folder.record()
            if record is None:
                continue
            other = other_origin(record.provenance, cell.planned.recipe, record.stretches)
            if other is not None:
                return other
            if now and (device := _device(record)) not in now:
                return f"{device}, and proposals run on {', '.join(sorted(map(str, now)))}"
        return None

    def _devices(self, book: Book) -> set[str | None]:
        """Return the devices of the open proposal's runs."""
        cells = [
            cell
            for each in book.proposals
            if each.outcome == "open" and each.stack == book.stack and each.seeds
            for cell in self.runs.cells(book, each.stack, each.seeds, each.words)
        ]
        records = [cell.planned.folder.record() for cell in cells]
        return {_device(record) for record in records if record is not None}

    def scores(self, book: Book) -> list[float]:
        """Return the scores of the newest floor, as far as its runs have ended."""
        if not book.floors or book.floors[-1].stack != book.stack:
            return []
        floor = book.floors[-1]
        scores = self.runs.scores(self.runs.cells(book, floor.stack, floor.seeds))
        if scores is None:
            stack = "another file, with those of its kept changes in common that train" if book.stack else None
            allowed = stack or "a baseline that trains"
            raise LostError(f"{self.runs.file.name}: a run of the floor diverged; allowed: {allowed}")
        return scores


def _device(record: Record) -> str | None:
    """Return where a run was trained; None where its record does not tell."""
    return record.stretches[-1].device if record.stretches else record.runtime.get("device")
