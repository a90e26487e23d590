"""Runs as a report sees them, and arms: all runs of one condition."""

from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ablab.errors import UserError
from ablab.fields import flatten
from ablab.statistics.student import Floats
from ablab.store.artefacts import Artefact, comparable_artefacts
from ablab.store.metrics import read_metrics
from ablab.store.records import Curve, Evaluation, Record, Selected
from ablab.store.run_folder import RunFolder
from ablab.study.study import survivors
from ablab.tasks.identity import run_id

T = TypeVar("T")


def recipe_of(folder: RunFolder, record: Record) -> dict[str, Any]:
    """Return the recipe of a run that has ended; UserError if it is not the one that the run is named after."""
    recipe = folder.recipe()
    if run_id(recipe) != record.run_id:
        raise UserError(f"{folder.path / 'recipe.yaml'} is not the recipe of {record.run_id}: it was edited")
    return recipe


def evaluation_of(folder: RunFolder, evaluation_id: str) -> Evaluation | None:
    """Return an evaluation as reports hold it, or None."""
    found = folder.evaluation(evaluation_id)
    return None if found is None else with_arrays(found)


def with_arrays(evaluation: Evaluation) -> Evaluation:
    """Return an evaluation with its items as arrays, in a third of the memory: a report holds those of every run."""
    return evaluation.model_copy(update={"items": {key: _short(rows) for key, rows in evaluation.items.items()}})


def _short(rows: Sequence[Sequence[float]]) -> npt.NDArray[Any]:
    """Return whole numbers in 16 or 32 bits where these hold them."""
    try:
        found = np.array(array("i", list(chain.from_iterable(rows))))  # in two thirds of the time
    except (TypeError, OverflowError):  # no whole numbers, or large ones
        return np.array(rows)
    if np.abs(found).max(initial=0) <= SMALL:
        found = found.astype(np.int16)
    return found.reshape(len(rows), -1) if rows else found


SMALL = 4000
"""Counts of which differences, and sums of a few, still have room in 16 bits."""


@dataclass(frozen=True)
class Given:
    """Scores of a run from elsewhere, by metric. `run`: its seed and arm, in words.

    `items`: of the test items that a score is the mean of, [items].
    """

    run: str
    scores: Mapping[str, float]
    items: Mapping[str, Floats]


@dataclass(frozen=True)
class ArmRun:
    """A run of an arm, finished or not. `state`: as in the ledger. `recipe`: flat, keyed by dotted names.

    `curve`: quality against layers; `head_curve`: against heads. `given`: its scores, where they are all that is known
    of the run. `damage`: what could not be read of it so far; what that holds is left out, and a note says so.
    """

    folder: RunFolder
    seed: int
    state: str
    record: Record | None
    evaluation: Evaluation | None
    curve: Curve | None
    recipe: Mapping[str, Any]
    given: "Given | None" = None
    head_curve: Curve | None = None
    damage: list[str] = field(default_factory=list, compare=False)

    @classmethod
    def damaged(cls, folder: RunFolder, seed: int, recipe: Mapping[str, Any], damage: str) -> "ArmRun":
        """Return a run of which nothing counts, since a file that it stands on cannot be read."""
        return cls(folder, seed, "damaged", None, None, None, recipe, damage=[damage])

    @classmethod
    def read(cls, folder: RunFolder, evaluation_id: str, curve_id: str = "") -> "ArmRun | None":
        """Return a run that has ended, with this evaluation and curve of it; UserError where it cannot be read.

        evaluation_id: empty for a run that is not evaluated.
        """
        if (record := folder.record()) is None:
            return None
        recipe, evaluation = flatten(recipe_of(folder, record)), evaluation_of(folder, evaluation_id)
        is_whole = evaluation is not None or not evaluation_id
        state = "diverged" if record.state == "diverged" else "finished" if is_whole else "not judged"
        return cls(folder, recipe["seed"], state, record, evaluation, folder.curve(curve_id), recipe)

    @property
    def curves(self) -> list[Curve]:
        """Its pruning curves: of layers, and of heads."""
        return [curve for curve in (self.curve, self.head_curve) if curve is not None]

    @property
    def selected(self) -> Selected | None:
        """The selected checkpoint, or None where training selected none."""
        return None if self.record is None else self.record.selected

    @property
    def has_finished(self) -> bool:
        """True if it finished with evaluated weights."""
        return self.state == "finished"

    @property
    def has_ended(self) -> bool:
        """True if it finished or diverged."""
        return self.state in ("finished", "diverged")

    @cached_property
    def metrics(self) -> list[dict[str, float]]:
        """Rows of its training curves; empty where the file is gone."""
        return self._as_far_as_readable(lambda: read_metrics(self.folder.metrics), self.folder.metrics.exists()) or []

    @property
    def artefacts(self) -> Mapping[str, Artefact]:
        """Those that reports compare, by name."""
        return self._as_far_as_readable(lambda: comparable_artefacts(self.folder.artefacts)) or {}

    def hypotheses(self) -> list[str]:
        """Return its translations of the test set, one line per sentence; empty where the file is gone."""
        evaluation = self.evaluation
        if evaluation is None:
            return []
        return self._as_far_as_readable(lambda: self.folder.hypotheses(evaluation.evaluation_id)) or []

    def _as_far_as_readable(self, read: Callable[[], T], is_there: bool = True) -> T | None:
        """Return what is read, or None where there is nothing or it is damaged; then `damage` says so."""
        try:
            return read() if is_there else None
        except UserError as error:
            if str(error) not in self.damage:
                self.damage.append(str(error))
            return None

    @property
    def has_lost_translations(self) -> bool:
        """True if it was evaluated on a text but its translations are gone."""
        if self.evaluation is None or not self.evaluation.references:
            return False
        return not self.folder.translations(self.evaluation.evaluation_id).exists()


@dataclass(frozen=True)
class ArmRuns:
    """An arm and all of its planned runs."""

    name: str
    runs: Sequence[ArmRun]
    _found: dict[Hashable, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def once(self, what: Hashable, find: Callable[[], T]) -> T:
        """Return what is found of the arm under this name, found at the first asking: each pair of arms asks again."""
        if what not in self._found:
            self._found[what] = find()
        found: T = self._found[what]
        return found

    @cached_property
    def folders(self) -> frozenset[str]:
        """Paths of its runs."""
        return frozenset(str(run.folder.path) for run in self.runs)

    @cached_property
    def evaluated(self) -> frozenset[tuple[str, str | None]]:
        """Paths and evaluations of its runs: arms that have the same are one model, under several names."""
        return frozenset(
            (str(run.folder.path), None if run.evaluation is None else run.evaluation.evaluation_id)
            for run in self.runs
        )

    @cached_property
    def finished(self) -> list[ArmRun]:
        """The runs that were evaluated."""
        return [run for run in self.runs if run.has_finished]

    @cached_property
    def diverged(self) -> list[ArmRun]:
        """The runs that diverged: results too, but never averaged."""
        return [run for run in self.runs if run.state == "diverged"]

    @property
    def drawn(self) -> list[ArmRun]:
        """The trained runs whose mean is drawn: those that did not diverge, or all if every one did."""
        trained = [run for run in self.runs if run.record is not None]
        return [run for run in trained if run.state != "diverged"] or trained

    def mark(self, shown: int) -> str:
        """Return the mark of a mean over so many of its runs; empty where no run diverged."""
        return survivors(shown, len(self.runs), len(self.diverged))
