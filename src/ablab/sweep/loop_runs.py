"""The runs of a loop: which runs a stack of changes has, on which seeds, what they cost, and training them."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ablab.errors import UserError
from ablab.files import write_json
from ablab.judge.loop import Left, identity_of, left_of, measure_of, scores_of
from ablab.judge.metrics import Measure
from ablab.store.run_folder import RunFolder
from ablab.study.cells import cells_of
from ablab.study.design import Arm
from ablab.study.ledger import RESULTS, State
from ablab.study.loop import Book, Floor, Ledger, LoopFile, Proposal
from ablab.study.study import Cell, Study
from ablab.sweep.hydra import RunLauncher
from ablab.sweep.sweep import Launch, finish
from ablab.text import how_many
from ablab.tracking.console import Console
from ablab.tracking.open import ready

SEEDS = 2**31
"""Seeds are drawn below this number."""


class StoppedError(Exception):
    """The user has stopped the runs; the same line goes on."""


class RunFailedError(Exception):
    """A run failed, and policy does not try it again."""


@dataclass
class LoopRuns:
    """The runs of one loop in one store."""

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

    def cells(self, book: Book, stack: Sequence[int], seeds: Sequence[int], words: Sequence[str] = ()) -> list[Cell]:
        """Return the runs of a stack, with one more change, on these seeds."""
        changes = [*book.changes(stack), *([list(words)] if words else [])]
        name = " ".join(words) or stack_in_words(book)
        return self.of_words(name, self.file.words(*changes), seeds)

    def of_words(self, name: str, words: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
        from ablab.config.grammar import spelled

        return list(cells_of([Arm(name, (*words, f"outputs={spelled('outputs', str(self.outputs))}"))], seeds, ()))

    def identity_of(self, book: Book, stack: Sequence[int], words: Sequence[str] = ()) -> str:
        """Return the same text for stacks whose runs are the same."""
        return identity_of(self.cells(book, stack, [0], words)[0].planned, self.file.loop.metric)

    def measure_of(self, cell: Cell) -> Measure:
        return measure_of(cell.planned, self.file.loop.metric)

    def scores(self, cells: Sequence[Cell]) -> list[float] | None:
        """Return the scores of these runs, as far as they have ended; None if one diverged."""
        return scores_of([cell.planned for cell in cells], self.measure_of(cells[0]))

    def train(self, cells: Sequence[Cell]) -> None:
        """Run what is missing of these. StoppedError when the user stops it, RunFailedError where a run fails."""
        study = Study(
            self.file.name,
            [Arm(name, ()) for name in dict.fromkeys(cell.arm for cell in cells)],
            cells[0].arm,
            list(dict.fromkeys(cell.seed for cell in cells)),
            cells,
        )
        self._note(cells)
        self.launcher.check(cell.planned.config for cell in cells)
        ready(cells[0].planned.config.logger, self.console.say)
        board = finish(study, self.launch, self.console)
        if board is None:
            raise StoppedError
        # A run that failed comes before those that were stopped for it.
        for entry in sorted(board.entries.values(), key=lambda one: one.state is not State.FAILED):
            if entry.state is State.FAILED and entry.failure is not None:
                raise RunFailedError(f"{entry.cell.planned.run_id}: {entry.failure.line}")
            if entry.state not in RESULTS:
                raise RunFailedError(f"{entry.cell.planned.run_id} is {entry.state.value}")

    def _note(self, cells: Sequence[Cell]) -> None:
        """Let lists of runs tell to what each belongs."""
        known = {row["run_id"]: row for row in self.ledger.noted}
        rows = {
            cell.planned.run_id: {
                "arm": cell.arm,
                "seed": cell.seed,
                "run_id": cell.planned.run_id,
                "words": list(cell.words),
            }
            for cell in cells
        }
        write_json(self.ledger.folder / "runs.json", [*{**known, **rows}.values()])

    def drawn(self, book: Book, count: int) -> list[int]:
        """Draw seeds that no run of the loop has had, which nobody can know before."""
        found: list[int] = []
        while len(found) < count:
            seed = secrets.randbelow(SEEDS)
            if seed not in book.seeds and seed not in found:
                found.append(seed)
        return found

    def _seconds(self, book: Book) -> float:
        """Return how long the runs of floors and proposals have trained."""
        drawn: list[Floor | Proposal] = [*book.floors, *book.costing]
        seeds = {seed for each in drawn for seed in each.seeds}
        # By their ids as they were noted: what was spent before an input was edited is spent.
        ids = [row["run_id"] for row in self.ledger.noted if row["seed"] in seeds]
        records = [RunFolder(self.outputs / "runs" / run_id).record() for run_id in ids]
        return sum(record.cost.seconds for record in records if record is not None)

    def left(self, book: Book) -> Left:
        """Return what is left of the budget."""
        return left_of(self.file.loop, book, self._seconds(book))

    def check_left(self, book: Book, runs: int, of: str) -> None:
        """Raise UserError, before any of them begins, where the budget has fewer runs left."""
        left = self.left(book).runs
        if left is not None and left < runs:
            raise UserError(
                f"{self.file.name}: {of} needs {how_many(runs, 'more run')}, and {max(0, left)} are left; allowed: a "
                "larger budget.runs"
            )


def stack_in_words(book: Book) -> str:
    return how_many(len(book.stack), "kept change") if book.stack else "the baseline"
