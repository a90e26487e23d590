"""The definition of a study as data: arms, seeds, and the run of each pair."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ablab.config.labels import NONE, label
from ablab.files import json_digest
from ablab.statistics.looks import Looks
from ablab.study.claims import Settled
from ablab.study.design import SAME, Arm
from ablab.study.experiment import Experiment
from ablab.study.study_file import StudyFile
from ablab.study.tuning import TUNED, Tuned
from ablab.study.worth import Lengths
from ablab.tasks.plan import Planned
from ablab.tasks.task import Task


@dataclass(frozen=True)
class Cell:
    """An arm under a seed: one run, and the words that define it. `label`: what its study calls the arm."""

    arm: str
    seed: int
    words: tuple[str, ...]
    planned: Planned
    label: str = field(default="", compare=False)

    @property
    def said(self) -> str:
        """Its name for people: `ScaleNorm, seed 2`."""
        return f"{self.label or self.arm}, seed {self.seed}"

    @cached_property
    def key(self) -> str:
        """The task: store, run, evaluation and curve."""
        planned = self.planned
        return f"{planned.outputs} {planned.run_id} {planned.evaluation_id} {planned.curve_id}"


def names_of(arm: str) -> list[str]:
    """Return the names that are joined in the name of a united arm, or the one of any other."""
    return arm.split(SAME)


def label_of(name: str, given: Mapping[str, str] = NONE) -> str:
    """Return what people call an arm, with `, tuned` or the other names of a united one."""
    return SAME.join(
        f"{given.get(usual) or _with_plus(usual, given)}{one.removeprefix(usual)}"
        for one in names_of(name)
        for usual in [one.removesuffix(TUNED)]
    )


def _with_plus(name: str, given: Mapping[str, str]) -> str:
    """Return the label of an arm; that of a rung of a ladder keeps its plus."""
    return f"+{label(name[1:], given)}" if name.startswith("+") else label(name, given)


def by_arm(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Return the cells of each arm, in order."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.arm, []).append(cell)
    return found


def united(names: Sequence[str], keys: Mapping[str, Hashable]) -> dict[str, str]:
    """Map each name to the joint name of all names with the same key: `a = b`, in their order."""
    alike: dict[Hashable, list[str]] = {}
    for name in names:
        alike.setdefault(keys[name], []).append(name)
    return {name: SAME.join(group) for group in alike.values() for name in group}


def same_runs(runs: Mapping[str, Mapping[int, Hashable]]) -> dict[str, int]:
    """Number the arms, with one number for all that have the same run under each seed that they share.

    runs: by arm and seed. Arms may have different numbers of seeds, where these are added.
    """
    groups: list[dict[int, Hashable]] = []
    places: dict[tuple[int, Hashable], int] = {}
    found: dict[str, int] = {}
    for arm, own in runs.items():
        shared = dict.fromkeys(places[item] for item in own.items() if item in places)
        alike = (number for number in shared if all(groups[number].get(seed, run) == run for seed, run in own.items()))
        found[arm] = next(alike, len(groups))
        if found[arm] == len(groups):
            groups.append({})
        groups[found[arm]].update(own)
        places |= dict.fromkeys(own.items(), found[arm])
    return found


def survivors(shown: int, planned: int, diverged: int) -> str:
    """Return what a mean over `shown` runs leaves out, `3 of 5 runs: 2 diverged`; empty where no run diverged.

    A mean over the survivors flatters an arm, so none is drawn without this mark.
    """
    return f"{shown} of {planned} runs: {diverged} diverged" if diverged else ""


def marked(name: str, mark: str) -> str:
    """Return the name of an arm with its mark, `norm=post (3 of 5 runs: 2 diverged)`."""
    return f"{name} ({mark})" if mark else name


class Demand(NamedTuple):
    """What the first runs of a study ask of a machine. `runs`: how many they are; `memory`: most bytes of one, about;
    `threads`: most of one, where its settings say how many.
    """

    runs: int
    memory: int
    threads: int | None


@dataclass(frozen=True)
class Study:
    """Arms by seeds. Arms with the same runs and evaluations are united into one, with both names."""

    name: str
    arms: Sequence[Arm]
    baseline: str
    seeds: Sequence[int]
    cells: Sequence[Cell]
    claims: Sequence[Settled] = ()
    """Empty for a tuning study."""
    is_tuning: bool = False
    """True if the study only finds values for the experiment's own runs."""
    baselines: Mapping[str, str] = field(default_factory=dict)
    """The baseline of each arm, where a factor has one in each of its levels; empty otherwise."""
    typed: tuple[str, ...] = ()
    """The words that define the study."""
    tuned: Sequence[Tuned] = ()
    """What tuning tried for each arm, and chose."""
    trials: "Study | None" = None
    """The tuning study that ran before."""
    file: StudyFile | None = None
    """The file that declares it; None of a study that was typed."""
    looks: Looks | None = None
    """Looks at its claims, where seeds are added until these are settled. `cells` then has the seeds added so far."""
    lengths: Lengths | None = None
    """The baseline at other lengths, where the study asks what its arms are worth in compute."""

    def __post_init__(self) -> None:
        labels = {arm: self.label_of(arm) for arm in {cell.arm for cell in self.cells}}
        object.__setattr__(self, "cells", [replace(cell, label=labels[cell.arm]) for cell in self.cells])

    @property
    def experiment(self) -> Experiment | None:
        """What its file declares."""
        return None if self.file is None else self.file.experiment

    @property
    def cautions(self) -> list[str]:
        """What a user should know of the settings before a run: of the first ten arms, since others repeat it."""
        tasks = [self.cells_of(arm.name)[0].planned.task for arm in self.arms[:10]]
        return list(dict.fromkeys(line for task in tasks for line in task.cautions()))

    @property
    def is_of_machine(self) -> bool:
        """Whether a claim is about a speed or memory, which other runs at work would change."""
        return any(claim.metric in self.task.costs for claim in self.claims)

    @property
    def demand(self) -> Demand | None:
        """What its runs ask of one machine; None where nobody knows."""
        firsts = [self.cells_of(arm.name)[0].planned for arm in self.arms]
        needs = [need for each in firsts if (need := each.task.memory(each.config)) is not None]
        if len(needs) < len(firsts):
            return None
        seeds = self.seeds if self.looks is None else self.seeds[: self.looks.first]
        runs = len({cell.key for cell in self.cells if cell.seed in seeds})
        return Demand(runs, max(needs), max(each.config.trainer.threads or 0 for each in firsts) or None)

    def baseline_of(self, arm: str) -> str:
        """Return the name of the arm that this one is compared with."""
        return self.baselines.get(arm, self.baseline)

    @cached_property
    def rows(self) -> dict[str, str]:
        """The name of each arm in a table of whole models, where arms that differ by pruning alone are one row."""

        judged = {
            arm.name: {cell.seed: (cell.planned.run_id, cell.planned.evaluation_id) for cell in self.cells_of(arm.name)}
            for arm in self.arms
        }
        return united(list(judged), same_runs(judged))

    @property
    def arm_of_rows(self) -> dict[str, str]:
        """The arm of each row that has the most seeds, by the row's name."""
        found: dict[str, str] = {}
        for arm, row in self.rows.items():
            found[row] = max(found.get(row, arm), arm, key=lambda name: len(self.cells_of(name)))
        return found

    def cells_of(self, arm: str) -> Sequence[Cell]:
        """Return the cells of an arm."""
        return self._by_arm.get(arm, ())

    @cached_property
    def _by_arm(self) -> dict[str, list[Cell]]:
        return by_arm(self.cells)

    @cached_property
    def runs(self) -> dict[str, Cell]:
        """Every task once, by its key. Two evaluations of one run are two tasks."""
        runs: dict[str, Cell] = {}
        for cell in self.cells:
            runs.setdefault(cell.key, cell)
        return runs

    def words_of(self, cell: Cell) -> list[str]:
        """Return the words that define the run, and its study, arm and name at the tracker."""
        from ablab.config.grammar import literal  # it imports Hydra, which reports do without

        about = {
            "study": self.name,
            "arm": cell.arm,
            "label": self.label_of(cell.arm),
            "name": self.name_of(cell),
        }
        return [*cell.words, *(f"logger.{key}={literal(value)}" for key, value in about.items())]

    def name_of(self, cell: Cell) -> str:
        """Return the run's name at the tracker: `PostNorm, seed 2`."""
        logger = cell.planned.config.logger
        asked = logger.name or logger.heard("NAME")
        said = self.label_of(cell.arm)
        mark = " (baseline)" if cell.arm == self.baseline_of(cell.arm) and len(self.arms) > 1 else ""
        return ", ".join([*([asked] if asked else []), f"{said}{mark}", f"seed {cell.seed}"])

    def label_of(self, arm: str) -> str:
        """Return what people call an arm, as the reports of the study do."""
        return label_of(arm, {} if self.experiment is None else self.experiment.spoken)

    def said(self, claim: Settled) -> str:
        """Return a claim in a line, with what people call its arms where that tells them apart."""
        names = {name: self.label_of(name) for name in claim.weights}
        return (claim.renamed(names) if len({*names.values()}) == len(names) else claim).words

    @property
    def digest(self) -> str:
        """Digest of all tasks: a study with another seed, arm or evaluation is another comparison."""
        return digest_of(self.cells)

    @property
    def task(self) -> Task:
        """What its runs are."""
        return self.cells[0].planned.task

    @property
    def outputs(self) -> Path:
        """The store of its runs."""
        return self.cells[0].planned.outputs

    @property
    def folder(self) -> Path:
        """The folder of the study, which holds none of its runs."""
        return self.outputs / "studies" / self.name


def digest_of(cells: Sequence[Cell]) -> str:
    """Return 11 hex digits: the same tasks are the same study, in whichever order they were typed."""
    tasks = sorted({(cell.planned.run_id, cell.planned.evaluation_id, cell.planned.curve_id) for cell in cells})
    return json_digest(tasks, 11)
