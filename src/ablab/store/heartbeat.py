"""The heartbeat of a run: a small file with its current state, rewritten every few seconds for other processes."""

import os
import platform
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ablab.store.spent import OF_STAGES, Spent

BEAT = 2.0
"""Seconds between two writes."""

DEAD = 60.0
"""Seconds without a write after which a run on another machine counts as dead. On this machine, its lock decides."""


JOB = "ABLAB_JOB"
"""The variable with the id of the job of a cluster that this process is; its next attempt elsewhere has the same."""


class Pulse(BaseModel):
    """The state of a run, as its heartbeat file holds it.

    `machine`: which start of which machine, since names are not unique; older ones have none. `job`: the id of the job
    of a cluster that makes the run. `stage`: preparing, training, evaluating or pruning. `score`: of the last
    validation. `updated`: Unix time; once read, by the reader's clock.
    """

    model_config = ConfigDict(frozen=True)

    host: str
    machine: str | None = None
    job: str | None = None
    pid: int
    began: float
    stage: str = "preparing"
    step: int = 0
    total_steps: int | None = None
    score: float | None = None
    loss: float | None = None
    tokens_per_second: float | None = None
    seconds_per_step: float | None = None
    updated: float

    @property
    def is_here(self) -> bool:
        """True if this machine wrote it, since it was started."""
        return self.host == platform.node() if self.machine is None else self.machine == this_machine()

    @property
    def is_former(self) -> bool:
        """True if an earlier attempt of the job that this process is wrote it: the cluster has ended that one."""
        return self.job is not None and self.job == os.environ.get(JOB)

    @property
    def is_fresh(self) -> bool:
        """True if it is less than DEAD seconds old."""
        return time.time() - self.updated < DEAD


@cache
def this_machine() -> str:
    """Return an id of this start of this machine: containers share names, and copies of machines share their id."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:  # not Linux
        return f"{platform.node()}-{uuid.getnode():x}"


class Heartbeat:
    """Writes the pulse of a run from a background thread, as long as `owns` says that the run is this process's.

    `spent`: where the run's time went; a stage begins a part of it.
    """

    def __init__(self, path: Path, owns: Callable[[], bool] = lambda: True, spent: Spent | None = None) -> None:
        self._path, self._owns = path, owns
        self.spent = Spent() if spent is None else spent
        at = time.time()
        job = os.environ.get(JOB)
        self._pulse = Pulse(
            host=platform.node(), machine=this_machine(), job=job, pid=os.getpid(), began=at, updated=at
        )
        self._stopped, self._woken = threading.Event(), threading.Event()

    def tell(self, **news: Any) -> None:
        """Update fields of the pulse; the next beat writes them, which a new stage does not wait for."""
        before, self._pulse = self._pulse, self._pulse.model_copy(update=news)
        if self._pulse.stage != before.stage:
            self._woken.set()
            if self._pulse.stage in OF_STAGES:  # a task of one's own may tell others, which begin no part
                self.spent.begin(OF_STAGES[self._pulse.stage])

    def beat(self) -> None:
        """Write the pulse now. Errors are ignored: a full disk must not end a training run."""
        pulse = self._pulse.model_copy(update={"updated": time.time()})
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            temporary.write_text(pulse.model_dump_json(), encoding="utf-8")
            temporary.replace(self._path)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def run(self) -> None:
        """Beat until stopped."""
        while not self._stopped.is_set() and self._may_own():
            self.beat()
            self._woken.wait(BEAT)
            self._woken.clear()

    def stop(self) -> None:
        self._stopped.set()
        self._woken.set()

    def remove(self) -> None:
        """Remove the pulse, and what a kill left of others, unless the run is another process's by now."""
        with suppress(OSError):
            for pulse in self._path.parent.glob(f"{self._path.name}*") if self._owns() else ():
                pulse.unlink(missing_ok=True)

    def _may_own(self) -> bool:
        """Return whether the run is not known to be another process's: an error of the disk must not end the beats."""
        try:
            return self._owns()
        except OSError:
            return True


@contextmanager
def heartbeat(path: Path, owns: Callable[[], bool] = lambda: True, spent: Spent | None = None) -> Iterator[Heartbeat]:
    """Run a heartbeat while the block runs. The file is removed when the block ends, unless the process is killed."""
    beating = Heartbeat(path, owns, spent)
    thread = threading.Thread(target=beating.run, name="pulse", daemon=True)
    thread.start()
    try:
        yield beating
    finally:
        beating.stop()
        thread.join()
        beating.remove()


def read_pulse(path: Path) -> Pulse | None:
    """Return the last pulse, or None if there is no readable one.

    When another machine wrote it is told by the file system, whose clock all machines share: theirs may differ by more
    than DEAD.
    """
    try:
        pulse = Pulse.model_validate_json(path.read_bytes())
        return pulse if pulse.is_here else pulse.model_copy(update={"updated": _written(path)})
    except (OSError, ValidationError):
        return None


def _written(path: Path) -> float:
    """Return when a file was written, by this machine's clock."""
    written = path.stat().st_mtime
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".clock.") as now:
            return written + time.time() - os.fstat(now.fileno()).st_mtime
    except OSError:  # a store that cannot be written shows no clock
        return written
