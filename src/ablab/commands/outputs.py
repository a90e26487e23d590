"""What study, sync and verify print with format=json, as models."""

from pydantic import Field

from ablab.judge.verify import RunVerified, StampVerified
from ablab.store.failures import Failure
from ablab.store.heartbeat import Pulse
from ablab.store.records import Strict


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
    """What was verified. `faults`: of registers and a study's files, and what cannot be read; `runs` have their own.

    `notes`: in what a study is not as it was registered. `stamp`: of the register as it is;
    `held`: those from outside.
    """

    holds: bool = True
    runs: list[RunVerified] = Field(default_factory=list)
    faults: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    held: list[StampVerified] = Field(default_factory=list)
    stamp: str | None = None


class ToSend(Strict):
    """A run or study with events that W&B lacks, and the project that they go to."""

    folder: str
    project: str


class Unsent(Strict):
    """What W&B lacks, or lacked before it was sent."""

    dry_run: bool
    missing: list[ToSend]
