"""The subject of a report: arms, their runs as stored, and the claims made of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ablab.errors import UserError
from ablab.files import folder_name, read_json
from ablab.store.metrics import read_metrics
from ablab.store.records import Curve, Evaluation, Record, Selected
from ablab.store.run_folder import RunFolder
from ablab.study.claims import Settled, settle
from ablab.study.experiment import ErrorEstimate
from ablab.study.study import SAME, united
from ablab.study.survivors import survivors


@dataclass(frozen=True)
class Run:
    """A run of an arm, finished or not. `state`: as in the ledger. `recipe`: flat, keyed by dotted names."""

    folder: RunFolder
    seed: int
    state: str
    record: Record | None
    evaluation: Evaluation | None
    curve: Curve | None
    recipe: Mapping[str, Any]

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


class Registered(BaseModel):
    """The study as registered at its first launch. `typed`: the words of that launch.

    `conditions`: ids of recipes by arm; `judged`: ids of evaluation and curve by arm, which older stores lack. So they
    do `error`: until then every claim was judged by the paired t test.
    """

    claims: list[Settled]
    seeds: list[int]
    runs_already_done: int
    conditions: dict[str, str] = {}
    judged: dict[str, str] = {}
    typed: list[str] = []
    error: ErrorEstimate = "paired"

    @classmethod
    def of(cls, folder: Path) -> "Registered | None":
        """Read the registration; None where the study was never launched. Raises UserError where it cannot be read."""
        path = folder / "registered.json"
        if not path.exists():
            return None
        try:
            first = read_json(path)[0]
            # Older stores omit the baseline and metric of a claim where those of the study apply.
            claims = [settle(claim, first["baseline"], "test_bleu") for claim in first["claims"]]
            return cls.model_validate({**first, "claims": claims})
        except (ValueError, LookupError, TypeError, AttributeError):
            raise UserError(f"{path}: cannot be read as what the study registered") from None


def way_of(evaluation: Evaluation) -> str:
    """Describe an evaluation: `test (1,000 sentences), decoding beam_size=4, length_penalty=0.6`."""
    search = ", ".join(f"{key}={value}" for key, value in evaluation.settings["decoding"].items())
    return f"{evaluation.test_name} ({evaluation.sentences:,} sentences), decoding {search}"


@dataclass(frozen=True)
class Selection:
    """Arms to be compared with the one named `baseline`. `factors`: levels by factor of a factorial design.

    `claims`: those of the file, and those registered at the first launch and dropped since. `choosing`: the scores by
    which settings of the arms were chosen before, if they were. `departed`: how the study differs from its first
    launch. `notes`: for the top of the report. `error`: how the noise of claims is estimated. `within`: the factor in
    each level of which arms have a baseline of their own, and `baselines`: those, by arm; empty: all have one.
    `awaited`: runs that were registered, and have neither ended nor been given up; until then there is no verdict.
    `late`: runs that finished after they had been given up. `declared`: the metric of the experiment file; None without
    one. `study`: the folder of the study, of the selection of one. `flaws`: where the selection is not what the store's
    register has. `stamp`: the end of the register; `lost_stamps`: those of earlier reports that it never had.
    """

    name: str
    question: str
    source: str | None
    arms: Sequence[ArmRuns]
    baseline: str
    metric: str
    claims: Sequence[Settled]
    registered: Registered | None
    outputs: Path
    factors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    choosing: str | None = None
    departed: str | None = None
    notes: Sequence[str] = ()
    error: ErrorEstimate = "moderated"
    within: str | None = None
    baselines: Mapping[str, str] = field(default_factory=dict)
    awaited: Sequence[Run] = ()
    late: Sequence[Run] = ()
    declared: str | None = None
    study: Path | None = None
    flaws: Sequence[str] = ()
    stamp: str | None = None
    lost_stamps: Sequence[str] = ()

    def arm(self, name: str) -> ArmRuns | None:
        """Return the arm of this name, or None."""
        return next((arm for arm in self.arms if arm.name == name), None)

    @cached_property
    def rows(self) -> list[ArmRuns]:
        """The arms as tables of whole models show them: arms that differ by pruning alone are one row.

        Its name joins those of the arms.
        """

        judged = {
            arm.name: tuple((run.folder.path, run.evaluation and run.evaluation.evaluation_id) for run in arm.runs)
            for arm in self.arms
        }
        rows = united(list(judged), judged)
        arms = {arm.name: arm for arm in self.arms}
        first = {row: arms[arm] for arm, row in reversed(rows.items())}
        return [ArmRuns(row, first[row].runs) for row in dict.fromkeys(rows.values())]

    @property
    def baseline_row(self) -> ArmRuns:
        """The row that contains the baseline."""
        return next(row for row in self.rows if self.baseline in row.name.split(SAME))

    def baseline_of(self, row: ArmRuns) -> ArmRuns:
        """Return the row that this one is compared with."""
        own = self.baselines.get(row.name.split(SAME)[0], self.baseline)
        return next(one for one in self.rows if own in one.name.split(SAME))

    @property
    def baseline_rows(self) -> list[ArmRuns]:
        """The rows with which others are compared, each once."""
        return list({row.name: row for row in map(self.baseline_of, self.rows)}.values())

    def family(self, claim: Settled) -> list[Settled]:
        """Return the claims that share an error rate with this one: the primary ones, or the secondary ones."""
        return [one for one in self.claims if one.secondary == claim.secondary]

    @property
    def folder(self) -> Path:
        """The folder the report is written to."""
        return self.outputs / "reports" / folder_name(self.name)

    def where(self, test: Callable[[Run], bool]) -> list[Run]:
        """Return all runs of all arms that pass the test."""
        return [run for arm in self.arms for run in arm.runs if test(run)]
