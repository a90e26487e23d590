"""What a study is once it is defined: arms by seeds, and the run that each pair of them is."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ablab.files import json_digest
from ablab.plan import Planned
from ablab.study.claims import Settled
from ablab.study.design import Arm
from ablab.study.experiment import Experiment


@dataclass(frozen=True)
class Cell:
    """An arm under a seed: one run, and the words that make it."""

    arm: str
    seed: int
    words: tuple[str, ...]
    planned: Planned

    @cached_property
    def key(self) -> str:
        """What is to be done: the run, how it is judged, in which store."""
        planned = self.planned
        return f"{planned.outputs} {planned.run_id} {planned.evaluation_id} {planned.curve_id}"


SAME = " = "
"""Between the names of arms that are one."""


def by_arm(cells: Iterable[Cell], key: Callable[[Cell], Hashable]) -> dict[str, tuple[Hashable, ...]]:
    """The keys of each arm's cells, in their order."""
    found: dict[str, list[Hashable]] = {}
    for cell in cells:
        found.setdefault(cell.arm, []).append(key(cell))
    return {arm: tuple(keys) for arm, keys in found.items()}


def united(names: Sequence[str], keys: Mapping[str, Hashable]) -> dict[str, str]:
    """For each name, the one under which all names of equal key go: `a = b`, in their order."""
    alike: dict[Hashable, list[str]] = {}
    for name in names:
        alike.setdefault(keys[name], []).append(name)
    return {name: SAME.join(group) for group in alike.values() for name in group}


@dataclass(frozen=True)
class Study:
    """Arms by seeds. No two arms are the same runs judged alike: such arms are one, with both names."""

    name: str
    arms: Sequence[Arm]
    baseline: str
    seeds: Sequence[int]
    cells: Sequence[Cell]
    experiment: Experiment | None
    claims: Sequence[Settled] = ()
    """None while it only finds settings."""
    is_tuning: bool = False
    """Whether it only finds the values that the experiment's own runs will have."""
    typed: tuple[str, ...] = ()
    """The words that define it."""

    @cached_property
    def rows(self) -> dict[str, str]:
        """For each arm its name in a table of whole models: arms that differ by pruning alone are one row there."""

        judged = by_arm(self.cells, lambda cell: (cell.planned.run_id, cell.planned.evaluation_id))
        # Before a search has ended, nobody knows the cells of its winner.
        return united([arm.name for arm in self.arms], {arm.name: judged.get(arm.name, arm.name) for arm in self.arms})

    @property
    def first_of_rows(self) -> dict[str, str]:
        """By its name, the first arm of each row."""
        first = {row: arm for arm, row in reversed(self.rows.items())}
        return {row: first[row] for row in self.rows.values()}

    @cached_property
    def runs(self) -> dict[str, Cell]:
        """Everything that is to be done, once, by its key. Judging a run in two ways is two things to do."""
        runs: dict[str, Cell] = {}
        for cell in self.cells:
            runs.setdefault(cell.key, cell)
        return runs

    def words_of(self, cell: Cell) -> list[str]:
        """What makes the run, and says to W&B where it belongs."""
        arm = cell.arm.replace("\\", "\\\\").replace("'", "\\'")
        return [*cell.words, f"logger.group={self.name}", f"logger.arm='{arm}'"]

    @property
    def digest(self) -> str:
        """Of what is to be done: a study that gets another seed, arm or way to judge is another comparison."""
        return digest_of(self.cells)

    @property
    def outputs(self) -> Path:
        """The store of its runs."""
        return self.cells[0].planned.outputs

    @property
    def folder(self) -> Path:
        """What belongs to the study and to none of its runs."""
        return self.outputs / "studies" / self.name


def digest_of(cells: Sequence[Cell]) -> str:
    """11 hex digits: the same runs, judged alike, are the same study, in whichever order they were typed."""
    tasks = sorted({(cell.planned.run_id, cell.planned.evaluation_id, cell.planned.curve_id) for cell in cells})
    return json_digest(tasks, 11)
