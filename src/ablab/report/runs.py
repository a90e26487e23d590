"""Runs as a report sees them, and arms: all runs of one condition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ablab.statistics.student import Floats
from ablab.store.metrics import read_metrics
from ablab.store.records import Curve, Evaluation, Record, Selected
from ablab.store.run_folder import RunFolder
from ablab.study.study import survivors


@dataclass(frozen=True)
class Given:
    """Scores of a run from elsewhere, by metric. `items`: of the test items that a score is the mean of, [items]."""

    scores: Mapping[str, float]
    items: Mapping[str, Floats]


@dataclass(frozen=True)
class Run:
    """A run of an arm, finished or not. `state`: as in the ledger. `recipe`: flat, keyed by dotted names.

    `curve`: quality against layers; `head_curve`: against heads. `given`: its scores, where they are all that is known
    of the run.
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
        return read_metrics(self.folder.metrics) if self.folder.metrics.exists() else []

    def hypotheses(self) -> list[str]:
        """Return its translations of the test set, one line per sentence; empty where the file is gone."""
        return [] if self.evaluation is None else self.folder.hypotheses(self.evaluation.evaluation_id)

    @property
    def has_lost_translations(self) -> bool:
        """True if it was evaluated but its translations are gone."""
        return self.evaluation is not None and not self.folder.translations(self.evaluation.evaluation_id).exists()


@dataclass(frozen=True)
class ArmRuns:
    """An arm and all of its planned runs."""

    name: str
    runs: Sequence[Run]

    @property
    def finished(self) -> list[Run]:
        """The runs that were evaluated."""
        return [run for run in self.runs if run.has_finished]

    @property
    def diverged(self) -> list[Run]:
        """The runs that diverged: results too, but never averaged."""
        return [run for run in self.runs if run.state == "diverged"]

    @property
    def drawn(self) -> list[Run]:
        """The trained runs whose mean is drawn: those that did not diverge, or all if every one did."""
        trained = [run for run in self.runs if run.record is not None]
        return [run for run in trained if run.state != "diverged"] or trained

    def mark(self, shown: int) -> str:
        """Return the mark of a mean over so many of its runs; empty where no run diverged."""
        return survivors(shown, len(self.runs), len(self.diverged))
