"""What Slurm says of jobs: squeue of those that wait or run; sacct and a job's error file of those that are gone."""

import os
import re
import subprocess
import time
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

MISSING = 10.0
"""Seconds for which a job must be in no queue until it counts as gone: its result may take a while to be seen."""

SILENT = 30.0
"""Seconds after a request to stop for which an answer of Slurm is waited for."""

ASK_EVERY = (1.0, 30.0)
"""Seconds between two questions: the least, and the most, which a queue of ten minutes and more is asked at."""

ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
    *("REVOKED", "TIMEOUT"),
}
"""States of jobs that do not come back. squeue shows them for some minutes, Slurm's MinJobAge."""

OWN_PAUSES = (0.2, 2.0, 0.0)
"""Seconds after each question of a job about itself that was not answered."""

NO_TIME_LEFT = "INVALID"
"""What squeue says of the time left of a job that has exceeded its limit, which it calls COMPLETING."""

OUT_OF_MEMORY = re.compile(r"oom[-_ ]kill|out[ _]of[ _]memory", re.IGNORECASE)

TERMINATED = re.compile(r"task \S+: Terminated")
"""What srun says of a process that Slurm's signal has ended before it could handle it."""


class Queued:
    """Follows which jobs are still in the queue, and asks no more often than it must.

    submitit follows sacct, which does not know a waiting task of an array that was cancelled, takes a job that was
    pre-empted for one that will return, and knows nothing where Slurm keeps no accounts.
    """

    def __init__(self) -> None:
        self._began = self._answered = time.monotonic()
        self._asked = 0.0
        self._missing: dict[str, float] = {}

    def hurry(self) -> None:
        """Ask anew, and often: the jobs were told to end."""
        self._began = self._answered = time.monotonic()
        self._asked = 0.0

    def gone(self, ids: Collection[str], stopping: bool) -> dict[str, str | None]:
        """Return those of the jobs `ids` that have left the queue, with the state of each that Slurm still knows.

        If Slurm does not answer, none has, unless they were told to stop: then nothing is waited for in vain.
        """
        now = time.monotonic()
        rarely = max(ASK_EVERY[0], min(ASK_EVERY[1], (now - self._began) / 20))
        if now - self._asked < (ASK_EVERY[0] if self._missing else rarely):
            return {}
        self._asked = now
        if (known := jobs()) is None:
            return dict.fromkeys(ids) if stopping and now - self._answered > SILENT else {}
        self._answered = now
        ended = {each: known.get(each) for each in ids if each not in known or known[each].has_ended}
        self._missing = {each: self._missing.get(each, now) for each in ended}
        late = {each for each, since in self._missing.items() if now - since >= MISSING}
        return {
            each: None if seen is None else seen.state
            for each, seen in ended.items()
            if each in late or (stopping and seen is not None)
        }


class InQueue(NamedTuple):
    """What squeue says of a job. `reason`: why it waits."""

    state: str = ""
    reason: str = ""

    @property
    def has_ended(self) -> bool:
        """True if it neither waits nor runs, and will not again."""
        return self.state in ENDED


def jobs() -> dict[str, InQueue] | None:
    """Return this user's jobs by id, also those that have ended in the last minutes; None if Slurm does not answer."""
    said = _said("squeue", "-h", "-r", "-t", "all", "-u", str(os.getuid()), "-o", "%i %T %r")
    if said is None:
        return None
    lines = (line.split(maxsplit=2) for line in said.splitlines())
    return {words[0]: InQueue(*words[1:]) for words in lines if words}


def own_job() -> str | None:
    """Return the id of the job of Slurm that this process belongs to; None outside a job.

    A process of submitit on this machine, in an allocation, is no job of its own.
    """
    if os.environ.get("SUBMITIT_EXECUTOR") == "local":
        return None
    if (array := os.environ.get("SLURM_ARRAY_JOB_ID")) is not None:
        return f"{array}_{os.environ.get('SLURM_ARRAY_TASK_ID')}"
    return os.environ.get("SLURM_JOB_ID") or None


def own_state() -> str | None:
    """Return the state of this process's job: RUNNING, TIMEOUT, or COMPLETING while Slurm ends it; None if unknown.

    The first question may be ended by the signal that made this process ask.
    """
    for pause in OWN_PAUSES:
        if said := (_said("squeue", "-h", "-j", os.environ["SLURM_JOB_ID"], "-o", "%T %L") or "").split():
            return "TIMEOUT" if said[1:] == [NO_TIME_LEFT] else said[0]
        time.sleep(pause)
    return None


def state_of(job: str) -> str | None:
    """Return the state of a job that is gone, as CANCELLED or NODE_FAIL; None where Slurm keeps no accounts of it."""
    said = (_said("sacct", "-n", "-P", "-X", "-j", job, "-o", "State") or "").split()
    return said[0] if said else None


def last_error(log: Path) -> str | None:
    """Return the last error that Slurm's own daemons wrote into a job's error file, such as out of memory."""
    with suppress(OSError):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        told = [line.partition("error: ")[2] for line in lines if re.match(r"(slurmstepd|srun).*error: ", line)]
        return next((line for line in reversed(told) if OUT_OF_MEMORY.search(line)), told[-1] if told else None)
    return None


class Cluster(NamedTuple):
    """The cluster that this machine belongs to. `largest_array`: how many jobs one array may have."""

    name: str = ""
    largest_array: int = 1001


def cluster() -> Cluster:
    """Return what Slurm says of the cluster, and its defaults where it does not say; then it is asked again."""
    try:
        return _cluster()
    except LookupError:
        return Cluster()


@cache
def _cluster() -> Cluster:
    if (said := _said("scontrol", "show", "config")) is None:
        raise LookupError
    name = re.search(r"^ClusterName\s*=\s*(\S+)", said, re.MULTILINE)
    largest = re.search(r"^MaxArraySize\s*=\s*(\d+)", said, re.MULTILINE)
    return Cluster(name[1] if name else "", *([int(largest[1])] if largest else []))


def cancel(ids: Collection[str]) -> str | None:
    """Cancel these jobs; return what Slurm says if it refuses."""
    try:
        done = subprocess.run(["scancel", *ids], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else " ".join(done.stderr.split())


def _said(*words: str) -> str | None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout
