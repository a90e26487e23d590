"""What a report is about: arms, their runs as the store holds them, and what is claimed of them."""

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
from ablab.study.study import SAME, united


@dataclass(frozen=True)
class Run:
    """A run of an arm, finished or not. `state`: as in the ledger. `recipe`: flat, by dotted names."""

    folder: RunFolder
    seed: int
    state: str
    record: Record | None
    evaluation: Evaluation | None
    curve: Curve | None
    recipe: Mapping[str, Any]

    @property
    def selected(self) -> Selected | None:
        """The weights that count, where training has chosen any."""
        return None if self.record is None else self.record.selected

    @property
    def has_finished(self) -> bool:
        """With weights that were judged."""
        return self.state == "finished"

    @cached_property
    def metrics(self) -> list[dict[str, float]]:
        """Rows of its curves; none where the file is gone."""
        return read_metrics(self.folder.metrics) if self.folder.metrics.exists() else []

    def hypotheses(self) -> list[str]:
        """Its translations of the test set, a line per sentence; none where the file is gone."""
        return [] if self.evaluation is None else self.folder.hypotheses(self.evaluation.evaluation_id)

    @property
    def has_lost_translations(self) -> bool:
        """Whether it was judged, and nobody can see by what any more."""
        return self.evaluation is not None and not self.folder.translations(self.evaluation.evaluation_id).exists()


@dataclass(frozen=True)
class ArmRuns:
    """An arm, and every run that it should have."""

    name: str
    runs: Sequence[Run]

    @property
    def finished(self) -> list[Run]:
        """Those that were judged."""
        return [run for run in self.runs if run.has_finished]

    @property
    def diverged(self) -> list[Run]:
        """Results too, never averaged."""
        return [run for run in self.runs if run.state == "diverged"]


class Registered(BaseModel):
    """What the study said of itself when it was first launched. `typed`: its words.

    `conditions`: recipes by arm; `judged`: how they meet the test set, which older stores do not say.
    """

    claims: list[Settled]
    seeds: list[int]
    runs_already_done: int
    conditions: dict[str, str] = {}
    judged: dict[str, str] = {}
    typed: list[str] = []

    @classmethod
    def of(cls, folder: Path) -> "Registered | None":
        """None where it was never launched."""
        path = folder / "registered.json"
        if not path.exists():
            return None
        try:
            first = read_json(path)[0]
            # Older stores left to the study what a claim did not say.
            claims = [settle(claim, first["baseline"], "test_bleu") for claim in first["claims"]]
            return cls.model_validate({**first, "claims": claims})
        except (ValueError, LookupError, TypeError, AttributeError):
            raise UserError(f"{path}: cannot be read as what the study registered") from None


def way_of(evaluation: Evaluation) -> str:
    """How a run was judged, in words: `test (1,000 sentences), decoding beam_size=4, length_penalty=0.6`."""
    search = ", ".join(f"{key}={value}" for key, value in evaluation.settings["decoding"].items())
    return f"{evaluation.test_name} ({evaluation.sentences:,} sentences), decoding {search}"


@dataclass(frozen=True)
class Selection:
    """Arms to be compared, the first of them named `baseline`. `factors`: levels by factor, of a factorial design.

    `claims`: those of the file and those that it had when the study was first launched.
    `choosing`: by which scores settings of the arms were chosen before, where they were. `departed`: how it is not the
    study as that was first launched. `notes`: for the top of the report.
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

    def arm(self, name: str) -> ArmRuns | None:
        """By its name."""
        return next((arm for arm in self.arms if arm.name == name), None)

    @cached_property
    def rows(self) -> list[ArmRuns]:
        """The arms as tables of whole models show them: those that differ by pruning alone are one, with all names."""

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
        """The row in which the baseline stands."""
        return next(row for row in self.rows if self.baseline in row.name.split(SAME))

    @property
    def folder(self) -> Path:
        """Where the report goes."""
        return self.outputs / "reports" / folder_name(self.name)

    def where(self, test: Callable[[Run], bool]) -> list[Run]:
        """All runs of all arms that pass."""
        return [run for arm in self.arms for run in arm.runs if test(run)]
