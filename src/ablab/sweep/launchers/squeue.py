"""What Slurm says of jobs: squeue of those that wait or run; sacct and a job's error file of those that are gone."""

import os
import re
import subprocess
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

MISSING = 10.0
"""Seconds for which a job must be in no queue until it counts as gone: its result may take a while to be seen."""

SILENT = 30.0
"""Seconds after a request to stop for which an answer of Slurm is waited for."""

ASK_EVERY = (1.0, 30.0)
"""Seconds between two questions: the least, and the most, which a queue of ten minutes and more is asked at."""

OUT_OF_MEMORY = re.compile(r"oom[-_ ]kill|out[ _]of[ _]memory", re.IGNORECASE)


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

    def gone(self, ids: Collection[str], stopping: bool) -> set[str]:
        """Return those of the jobs `ids` that have left the queue.

        If Slurm does not answer, none has, unless they were told to stop: then nothing is waited for in vain.
        """
        now = time.monotonic()
        rarely = max(ASK_EVERY[0], min(ASK_EVERY[1], (now - self._began) / 20))
        if now - self._asked < (ASK_EVERY[0] if self._missing else rarely):
            return set()
        self._asked = now
        if (there := queued()) is None:
            return set(ids) if stopping and now - self._answered > SILENT else set()
        self._answered = now
        self._missing = {each: self._missing.get(each, now) for each in ids if each not in there}
        return {each for each, since in self._missing.items() if now - since >= MISSING}


def queued() -> set[str] | None:
    """Return the ids of this user's jobs that wait, run or are completing; None if Slurm does not answer."""
    said = _said("squeue", "-h", "-r", "-u", str(os.getuid()), "-o", "%i")
    return None if said is None else set(said.split())


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


def most_in_an_array() -> int:
    """Return how many jobs one array of this cluster may have; Slurm's default where it does not say."""
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", _said("scontrol", "show", "config") or "", re.MULTILINE)
    return int(found[1]) if found else 1001


def _said(*words: str) -> str | None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout
