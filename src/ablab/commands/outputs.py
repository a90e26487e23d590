"""What each verb prints with format=json, as models: docs/outputs.schema.json has their JSON schemas."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from ablab.api.card import RunCard
from ablab.api.differences import RunDifference
from ablab.api.listing import Listing
from ablab.api.removal import Removal
from ablab.judge.document import Document
from ablab.judge.verify import RunVerified
from ablab.store.failures import Failure
from ablab.store.heartbeat import Pulse
from ablab.store.records import Curve, Strict


class StudyRun(Strict):
    """A run of a study. `state`: as in its ledger. `pulse`: the last heartbeat of a run that goes on."""

    arm: str
    seed: int
    run_id: str
    state: str
    folder: str
    words: list[str]
    pulse: Pulse | None
    failure: Failure | None


class StudyState(Strict):
    """The plan and state of a study. `states`: number of runs in each."""

    study: str
    baseline: str
    seeds: list[int]
    states: dict[str, int]
    seconds_left: float | None
    runs: list[StudyRun]


class Verified(Strict):
    """What was verified. `faults`: of registers and a study's files, and what cannot be read; `runs` have their own."""

    holds: bool
    runs: list[RunVerified]
    faults: list[str] = Field(default_factory=list)


class PrunedRun(Strict):
    """A run and its pruning curve. `saved`: folder of the model that was saved, or None."""

    run: str
    name: str
    curve: Curve
    saved: str | None


class PrunedRuns(Strict):
    """Pruning curves. `picture`: of all of them."""

    runs: list[PrunedRun]
    picture: str


class Analysis(Strict):
    """An artefact of a run: its name, its title with the extreme values, and its file."""

    key: str
    summary: str
    file: str


class AnalysedRun(Strict):
    """A run and the artefacts that were asked for."""

    run: str
    name: str
    artefacts: list[Analysis]


class AnalysedRuns(Strict):
    """Analyses of runs."""

    runs: list[AnalysedRun]


class LawChecked(Strict):
    """A law, and what breaks it; None where it holds."""

    law: str
    broken: str | None


class PartsChecked(Strict):
    """The laws of the parts that were named."""

    holds: bool
    laws: list[LawChecked]


class ToSend(Strict):
    """A run or study with events that W&B lacks, and the project that they go to."""

    folder: str
    project: str


class Unsent(Strict):
    """What W&B lacks, or lacked before it was sent."""

    dry_run: bool
    missing: list[ToSend]


OUTPUTS: Mapping[str, type[BaseModel]] = {
    "study": StudyState,
    "report": Document,
    "prune": PrunedRuns,
    "analyse": AnalysedRuns,
    "sync": Unsent,
    "verify": Verified,
    "ls": Listing,
    "show": RunCard,
    "diff": RunDifference,
    "rm": Removal,
    "check": PartsChecked,
}
"""The model of each verb's output."""


def schemas() -> dict[str, Any]:
    """Return the JSON schema of each verb's output."""
    return {verb: model.model_json_schema(mode="serialization") for verb, model in OUTPUTS.items()}


def say_json(output: BaseModel) -> None:
    """Print an output, alone, on standard output."""
    print(output.model_dump_json(indent=1))  # noqa: T201
