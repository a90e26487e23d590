"""The referee of a loop: it draws seeds, runs floors, proposals and confirmations, and enters what came of each."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ablab.code.differences import other_origin
from ablab.errors import INTERRUPTED, UserError
from ablab.fields import flatten
from ablab.files import read_json, write_json
from ablab.judge.loop import (
    Left,
    check_noise,
    contrasts_of,
    identity_of,
    is_without_noise,
    left_of,
    look_at,
    measure_of,
    scores_of,
    seen,
)
from ablab.judge.metrics import Measure
from ablab.search.settings import Settings
from ablab.store.records import Record, now
from ablab.study.cells import cells_of
from ablab.study.design import Arm
from ablab.study.ledger import RESULTS, State
from ablab.study.loop import Book, Confirmed, Declaration, Floor, Ledger, LoopFile, Outcome, Proposal, content_of
from ablab.study.study import Cell, Study
from ablab.sweep.hydra import RunLauncher, TypedLine, carry_out, check_hydra
from ablab.sweep.sweep import Launch, finish
from ablab.text import how_many
from ablab.tracking.console import Console
from ablab.tracking.open import ready

SEEDS = 2**31
"""Seeds are drawn below this number."""

WHOLE, FIRST = "all kept changes", "the first baseline"
"""Arms of a confirmation; the others are the whole without one change."""


NO_NOISE = "its runs have one score whatever their seed, so that no change to it could be judged"

AGAIN = "the same line, typed again, tries it again"


class StoppedError(Exception):
    """The user has stopped the runs; the same line goes on."""


class RunFailedError(Exception):
    """A run failed, and policy does not try it again."""


@dataclass
class Referee:
    """Judges the proposals of one loop in one store."""

    file: LoopFile
    outputs: Path
    launcher: RunLauncher
    console: Console

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.outputs, self.file.name)

    @cached_property
    def launch(self) -> Launch:
        return self.launcher.launching(fail_fast=True)

    def book(self) -> Book:
        """Return what the ledger has, with what the file says now."""
        loop = self.file.loop
        said = Declaration(at=now(), content=content_of(loop), said=loop.model_dump(mode="json"))
        known = self.ledger.read()
        if known is None:
            return Book(declared=[said])
        if known.declared[-1].content == said.content:
            return known
        self.console.say(f"{self.file.path}: it was edited since {known.declared[-1].at[:10]}, and both are on record")
        return known.model_copy(update={"declared": [*known.declared, said]})

    # What is asked for

    def floor(self, seeds: int | None = None) -> Book:
        """Train the floor of the present stack, if there is none that still holds, on so many seeds at least."""
        with self.ledger.alone(self.console.say):
            return self._with_floor(self.book(), seeds)

    def propose(self, words: Sequence[str], because: str) -> tuple[Book, Proposal, bool]:
        """Judge a change; return the ledger, the proposal, and whether it had been judged before."""
        self._check(words)
        with self.ledger.alone(self.console.say):
            book = self.book()
            here = self._cells(book, book.stack, [0])[0]
            there = self._cells(book, book.stack, [0], words)[0]
            self._check_sealed(book, here, there)
            identity = self._identity(there)
            same = [each for each in book.proposals if each.stack == book.stack and each.identity == identity]
            if same and same[-1].outcome not in ("open", "failed"):
                return book, same[-1], True
            book, proposal = self._entered(book, words, because, identity)
            if identity == self._identity(here):
                return *self._decided(book, proposal, "null", "its runs are those of the stack as it is"), False
            return *self._judged(book, proposal), False

    def confirm(self) -> tuple[Book, Confirmed, bool]:
        """Confirm the stack on fresh seeds; return the ledger, what came, and whether it had been confirmed before."""
        with self.ledger.alone(self.console.say):
            book = self.book()
            if not book.stack:
                raise UserError(f"{self.file.name}: no change was kept; allowed: ablab confirm after one is")
            known = [each for each in book.confirmed if each.stack == book.stack]
            if known and known[-1].contrasts is not None:
                return book, known[-1], True
            asked = known[-1] if known else self._asked(book)
            if not known:
                book = self.ledger.write(book.model_copy(update={"confirmed": [*book.confirmed, asked]}))
            single = asked.seeds[: self.file.loop.confirmation.seeds]
            arms = {
                name: self._of_words(name, words, asked.seeds if name == WHOLE else single)
                for name, words in asked.arms.items()
            }
            measure = self._measure(next(iter(arms.values()))[0])
            try:
                self._run([cell for cells in arms.values() for cell in cells])
            except RunFailedError as error:
                raise UserError(f"{self.file.name}: a run of the confirmation failed: {error}; {AGAIN}") from None
            scores = {}
            for name, cells in arms.items():
                found = scores_of([cell.planned for cell in cells], measure)
                if found is None:
                    raise UserError(f"{name}: a run diverged on the seeds of the confirmation; nothing is confirmed")
                scores[name] = found
            whole = asked.model_copy(update={"contrasts": contrasts_of(scores, WHOLE, FIRST, self.file.loop, measure)})
            others = [each for each in book.confirmed if each is not book.confirmed[-1]]
            return self.ledger.write(book.model_copy(update={"confirmed": [*others, whole]})), whole, False

    def left(self, book: Book) -> Left:
        """Return what is left of the budget."""
        return left_of(self.file.loop, book, self._seconds(book))

    def measure(self, book: Book) -> Measure:
        """Return that by which runs are compared."""
        return self._measure(self._cells(book, [], [0])[0])

    # A proposal

    def _check(self, words: Sequence[str]) -> None:
        for word in words:
            key, equals, _ = word.partition("=")
            if not equals:
                raise UserError(f"{word}: no change; allowed: key=value")
            if key == "seed":
                raise UserError(f"{word}: the referee draws the seeds; allowed: other keys")
        if not words:
            raise UserError("try: no change was named; allowed: ablab try 'key=value' because='...'")

    def _check_sealed(self, book: Book, here: Cell, there: Cell) -> None:
        """Refuse a change of what confirmation alone may set, by whichever word; a group sets whatever is in it."""
        sealed = self.file.loop.confirmation.sealed
        if not sealed:
            return
        seals = self.file.words(sealed)[len(self.file.loop.common) :]
        named = tuple(f"{word.partition('=')[0]}." for word in seals)
        confirmed = self._cells(book, book.stack, [0], sealed)[0]
        before, after, last = (
            flatten(cell.planned.config.model_dump(serialize_as_any=True)) for cell in (here, there, confirmed)
        )
        for key in sorted(before.keys() | after.keys()):
            is_sealed = f"{key}.".startswith(named) or before.get(key) != last.get(key)
            if is_sealed and before.get(key) != after.get(key):
                raise UserError(f"{there.arm}: {key} is sealed until the confirmation; allowed: other keys")

    def _entered(self, book: Book, words: Sequence[str], because: str, identity: str) -> tuple[Book, Proposal]:
        """Enter a proposal before anything runs, or find it where it was left open."""
        for each in book.proposals:
            if each.outcome == "open" and each.identity == identity and each.stack == book.stack:
                return book, each
            if each.outcome == "open" and each.words == list(words):
                what = "the code or the inputs have" if each.stack == book.stack else "the stack has"
                book, _ = self._decided(book, each, "set aside", f"{what} changed before it was decided")
        if (over := self.left(book).over) is not None:
            raise UserError(f"{self.file.name}: {over} are spent; allowed: ablab confirm, or a larger budget")
        proposal = Proposal(
            number=len(book.proposals) + 1,
            at=now(),
            words=list(words),
            because=because,
            stack=book.stack,
            identity=identity,
        )
        return self.ledger.write(book.with_proposal(proposal)), proposal

    def _judged(self, book: Book, proposal: Proposal) -> tuple[Book, Proposal]:
        """Look after each number of seeds until it is decided."""
        loop = self.file.loop
        there, _ = self._floor_now(book)
        of_floor = max(0, loop.floor - (0 if there is None else len(there.seeds)))
        if of_floor:  # a floor with nothing left to compare would be trained for nothing
            self._check_left(book, of_floor + loop.levels.looks[0], f"proposal {proposal.number}, with its floor,")
        book = self._with_floor(book)
        self.floor_scores(book)  # a floor that diverged is refused before anything is compared with it
        for wanted in loop.levels.looks[len(proposal.looks) :]:
            if wanted > len(proposal.seeds):
                self._check_left(book, wanted - len(proposal.seeds), f"proposal {proposal.number}")
                drawn = self._drawn(book, wanted - len(proposal.seeds))
                proposal = proposal.model_copy(update={"seeds": [*proposal.seeds, *drawn]})
                book = self.ledger.write(book.with_proposal(proposal))
            cells = self._cells(book, proposal.stack, proposal.seeds[:wanted], proposal.words)
            measure = self._measure(cells[0])
            self.console.say(
                f"Proposal {proposal.number}, {' '.join(proposal.words)}: {how_many(wanted, 'seed')} of at most "
                f"{loop.looks[-1]}"
            )
            try:
                self._run(cells)
            except RunFailedError as error:
                return self._decided(book, proposal, "failed", str(error))
            book = self._with_floor(book)  # the runs may have come to another machine than those of the floor
            scores = scores_of([cell.planned for cell in cells], measure)
            if scores is None:
                return self._decided(book, proposal, "diverged", "a run of it diverged")
            floor = self.floor_scores(book)
            found = look_at(loop, measure, scores, floor)
            looked = [*proposal.looks, seen(found, now(), wanted, len(book.floors))]
            proposal = proposal.model_copy(update={"looks": looked})
            book = self.ledger.write(book.with_proposal(proposal))
            if found.outcome == "kept" and is_without_noise(scores):
                return self._decided(book, proposal, "dropped", NO_NOISE)  # the next floor would have no noise
            if found.outcome != "go on":
                return self._decided(book, proposal, found.outcome, "")
        raise AssertionError("the last look decides")

    def _decided(self, book: Book, proposal: Proposal, outcome: Outcome, why: str) -> tuple[Book, Proposal]:
        found = proposal.model_copy(update={"outcome": outcome, "why": why})
        return self.ledger.write(book.with_proposal(found)), found

    # The floor

    def _with_floor(self, book: Book, seeds: int | None = None) -> Book:
        """Return the ledger with a floor of the present stack whose runs have ended and are of the present code."""
        wanted = seeds or self.file.loop.floor
        floor, why = self._floor_now(book)
        if floor is None:
            identity = self._identity(self._cells(book, book.stack, [0])[0])
            floor = Floor(stack=book.stack, identity=identity, seeds=[], at=now(), why=why)
            book = book.model_copy(update={"floors": [*book.floors, floor]})
        if len(floor.seeds) < wanted:
            self._check_left(book, wanted - len(floor.seeds), "the floor")
            more = self._drawn(book, wanted - len(floor.seeds))
            floor = floor.model_copy(update={"seeds": [*floor.seeds, *more]})
            book = self.ledger.write(book.model_copy(update={"floors": [*book.floors[:-1], floor]}))
        cells = self._cells(book, floor.stack, floor.seeds)
        if any(cell.planned.folder.record() is None for cell in cells):
            self.console.say(f"Floor: {len(floor.seeds)} seeds of {self._stack_in_words(book)} ({why})")
        try:
            self._run(cells)
        except RunFailedError as error:
            raise UserError(f"{self.file.name}: a run of the floor failed: {error}; {AGAIN}") from None
        check_noise(self.file.name, self.floor_scores(book))
        return book

    def _floor_now(self, book: Book) -> tuple[Floor | None, str]:
        """Return the floor of the present stack, if there is one that still holds, and why there is or has to be."""
        floor = self._floor_of(book, self._identity(self._cells(book, book.stack, [0])[0]))
        if floor is not None and (other := self._other(book, floor)) is not None:
            return None, f"the one before is of {other}"
        return floor, f"the first of {'the stack' if book.stack else 'the baseline'}"

    def _check_left(self, book: Book, runs: int, of: str) -> None:
        """Raise UserError, before any of them begins, where the budget has fewer runs left."""
        left = self.left(book).runs
        if left is not None and left < runs:
            raise UserError(
                f"{self.file.name}: {of} needs {how_many(runs, 'more run')}, and {max(0, left)} are left; allowed: a "
                "larger budget.runs"
            )

    def _floor_of(self, book: Book, identity: str) -> Floor | None:
        last = book.floors[-1] if book.floors else None
        return last if last is not None and last.stack == book.stack and last.identity == identity else None

    def _other(self, book: Book, floor: Floor) -> str | None:
        """Return the other code or versions that a run of the floor is of, or the device of the newest proposal's."""
        now = self._devices(book)
        for cell in self._cells(book, floor.stack, floor.seeds) if floor.seeds else ():
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
            for cell in self._cells(book, each.stack, each.seeds, each.words)
        ]
        records = [cell.planned.folder.record() for cell in cells]
        return {_device(record) for record in records if record is not None}

    def floor_scores(self, book: Book) -> list[float]:
        """Return the scores of the newest floor, as far as its runs have ended."""
        if not book.floors or book.floors[-1].stack != book.stack:
            return []
        floor = book.floors[-1]
        cells = self._cells(book, floor.stack, floor.seeds)
        scores = scores_of([cell.planned for cell in cells], self._measure(cells[0]))
        if scores is None:
            raise UserError(f"{self.file.name}: a run of the floor diverged; allowed: a baseline that trains")
        return scores

    def _stack_in_words(self, book: Book) -> str:
        return how_many(len(book.stack), "kept change") if book.stack else "the baseline"

    # The confirmation

    def _asked(self, book: Book) -> Confirmed:
        """Return the arms of a confirmation: the whole, the whole without each change, the first baseline."""
        stacks: dict[str, list[int]] = {WHOLE: book.stack, FIRST: []}
        whole, idle = self._identity(self._cells(book, book.stack, [0])[0]), []
        for one in book.stack if len(book.stack) > 1 else ():
            change, others = " ".join(self._change(book, one)), [each for each in book.stack if each != one]
            if self._identity(self._cells(book, others, [0])[0]) == whole:
                idle.append(change)
            else:
                stacks[f"without {change}"] = others
        arms = {
            name: list(self.file.words(*book.changes(stack), self.file.loop.confirmation.sealed))
            for name, stack in stacks.items()
        }
        seeds = self._drawn(book, self.file.loop.confirmation.of_whole)
        return Confirmed(at=now(), stack=book.stack, seeds=seeds, arms=arms, idle=idle)

    def _change(self, book: Book, number: int) -> list[str]:
        return book.proposals[number - 1].words

    # Runs

    def _cells(self, book: Book, stack: Sequence[int], seeds: Sequence[int], words: Sequence[str] = ()) -> list[Cell]:
        """Return the runs of a stack, with one more change, on these seeds."""
        changes = [*book.changes(stack), *([list(words)] if words else [])]
        name = " ".join(words) or self._stack_in_words(book)
        return self._of_words(name, self.file.words(*changes), seeds)

    def _of_words(self, name: str, words: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
        from ablab.config.grammar import spelled

        return list(cells_of([Arm(name, (*words, f"outputs={spelled('outputs', str(self.outputs))}"))], seeds, ()))

    def _identity(self, cell: Cell) -> str:
        return identity_of(cell.planned, self.file.loop.metric)

    def _measure(self, cell: Cell) -> Measure:
        return measure_of(cell.planned, self.file.loop.metric)

    def _run(self, cells: Sequence[Cell]) -> None:
        """Run what is missing of these. StoppedError when the user stops it, RunFailedError where a run fails."""
        study = Study(
            self.file.name,
            [Arm(name, ()) for name in dict.fromkeys(cell.arm for cell in cells)],
            cells[0].arm,
            list(dict.fromkeys(cell.seed for cell in cells)),
            cells,
            None,
        )
        self._note(cells)
        self.launcher.check(cell.planned.config for cell in cells)
        ready(cells[0].planned.config.logger, self.console.say)
        board = finish(study, self.launch, self.console)
        if board is None:
            raise StoppedError
        for entry in board.entries.values():
            if entry.state is State.FAILED and entry.failure is not None:
                raise RunFailedError(f"{entry.cell.planned.run_id}: {entry.failure.line}")
            if entry.state not in RESULTS:
                raise RunFailedError(f"{entry.cell.planned.run_id} is {entry.state.value}")

    def _note(self, cells: Sequence[Cell]) -> None:
        """Let lists of runs tell to what each belongs."""
        path = self.ledger.folder / "runs.json"
        known = {row["run_id"]: row for row in (read_json(path) if path.exists() else [])}
        rows = {
            cell.planned.run_id: {
                "arm": cell.arm,
                "seed": cell.seed,
                "run_id": cell.planned.run_id,
                "words": list(cell.words),
            }
            for cell in cells
        }
        write_json(path, [*{**known, **rows}.values()])

    def _drawn(self, book: Book, count: int) -> list[int]:
        """Draw seeds that no run of the loop has had, which nobody can know before."""
        found: list[int] = []
        while len(found) < count:
            seed = secrets.randbelow(SEEDS)
            if seed not in book.seeds and seed not in found:
                found.append(seed)
        return found

    def _seconds(self, book: Book) -> float:
        """Return how long the runs of floors and proposals have trained."""
        cells = [cell for floor in book.floors if floor.seeds for cell in self._cells(book, floor.stack, floor.seeds)]
        for each in book.costing:
            cells += self._cells(book, each.stack, each.seeds, each.words)
        records = [cell.planned.folder.record() for cell in cells]
        return sum(record.cost.seconds for record in records if record is not None)


def _device(record: Record) -> str | None:
    """Return where a run was trained; None where its record does not tell."""
    return record.stretches[-1].device if record.stretches else record.runtime.get("device")


@dataclass(frozen=True)
class AskedLine(TypedLine):
    """A line that asks the referee of a loop for something, once Hydra has made its launcher."""

    file: LoopFile
    outputs: Path
    console: Console
    act: Callable[[Referee], int]

    def sweep(self, launcher: RunLauncher, settings: Settings | None = None) -> int:
        try:
            return self.act(Referee(self.file, self.outputs, launcher, self.console))
        except StoppedError:
            self.console.say("Stopped; the same line, typed again, continues from there")
            return INTERRUPTED


def ask(file: LoopFile, outputs: Path, of_hydra: Sequence[str], console: Console, act: Callable[[Referee], int]) -> int:
    """Let the referee of a loop act with the launcher that these words choose; return the exit code."""
    check_hydra(of_hydra, ())
    return carry_out(AskedLine((), file, outputs, console, act), of_hydra)
