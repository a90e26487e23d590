"""What has become of every run of a study: read from the store, whoever did the work, and whoever is at it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from filelock import FileLock, Timeout

from ablab.plan import Planned
from ablab.provenance import comes_from_elsewhere
from ablab.store.heartbeat import Pulse, read_pulse
from ablab.store.records import Failure, Record, read_failure
from ablab.store.run_folder import RunFolder
from ablab.study.arms import Cell, Study


class State(str, Enum):
    """Of a run. Trained: its weights are there, an evaluation or a curve that is asked for is not."""

    PLANNED = "planned"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    TRAINED = "trained"
    DIVERGED = "diverged"
    FINISHED = "finished"


RESULTS = (State.FINISHED, State.DIVERGED)
"""Nothing more happens to these runs."""


@dataclass(frozen=True)
class Entry:
    """A run, and what is known of it."""

    cell: Cell
    state: State
    record: Record | None
    pulse: Pulse | None
    failure: Failure | None

    @property
    def elsewhere(self) -> str | None:
        """Which other code or library versions it comes from; None where all is as it would be now."""
        return None if self.record is None else comes_from_elsewhere(self.record.provenance, self.record.stretches)

    @property
    def is_refused(self) -> bool:
        """Whether it was begun by other code, and could not go on from its checkpoint."""
        return self.state is State.FAILED and self.failure is not None and self.failure.kind == "refused"


def ledger(study: Study) -> dict[str, Entry]:
    """What is known of everything that is to be done, by its key."""
    return {key: entry_of(cell) for key, cell in study.runs.items()}


def entry_of(cell: Cell) -> Entry:
    """What is known of one run."""
    planned, folder = cell.planned, cell.planned.folder
    record = folder.record()
    pulse = read_pulse(folder.pulse)
    failure = read_failure(folder.failure)
    return Entry(cell, _state(planned, record, pulse, failure), record, pulse, failure)


def _is_held(folder: RunFolder, pulse: Pulse | None) -> bool:
    """Whether somebody is working on the run now."""
    if pulse is not None and not pulse.is_here:
        return pulse.is_fresh
    if not folder.lock.exists():
        return False
    lock = FileLock(folder.lock)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def count(entries: Sequence[Entry]) -> Counter[State]:
    """How many are in each state."""
    return Counter(entry.state for entry in entries)


def _state(planned: Planned, record: Record | None, pulse: Pulse | None, failure: Failure | None) -> State:
    folder = planned.folder
    complete = record is not None and not planned.lacks_evaluation(record) and not planned.lacks_curve(record)
    if record is not None and complete:
        return State.DIVERGED if record.state == "diverged" else State.FINISHED
    if _is_held(folder, pulse):
        return State.RUNNING
    if failure is not None:
        return State.FAILED
    if record is not None:
        return State.TRAINED
    return State.INTERRUPTED if (folder.path / "recipe.yaml").exists() else State.PLANNED
