"""What a job of a queue executes: one run, and how the job ends when it is told to stop."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablab.code.machine import StopOnce
from ablab.errors import FAILED, INTERRUPTED
from ablab.store.failures import write_failure
from ablab.store.heartbeat import JOB
from ablab.store.run_folder import RunFolder
from ablab.sweep.launchers import squeue
from ablab.sweep.launchers.jobs import forget
from ablab.sweep.watch import MOST_IN_VAIN, last_step


@dataclass
class SubmittedWork:
    """The function that a job executes.

    Told to stop, by the signal before the time limit or by SIGTERM, the run writes a checkpoint at its next step. A job
    that Slurm still counts as running (a time limit, or the grace period before a pre-emption) then returns to the
    queue, from where the run continues exactly. Of one that Slurm is ending, Slurm itself has decided whether it
    returns: it leaves no result, so that it is followed until it is in the queue no more.
    """

    words: Sequence[str]
    log: str

    def __call__(self) -> int:
        """Execute the run and return its exit code."""
        from ablab.sweep.launchers.task import perform, within

        number = getattr(signal, f"SIG{os.environ.get('SUBMITIT_PREEMPT_SIGNAL', 'USR2')}")
        requeue: Any = signal.getsignal(number)
        with within(self.log):
            code, is_due = self._performed(perform, number)
        job = squeue.own_job()
        if code != INTERRUPTED:
            if job is not None:
                forget(RunFolder(Path(self.log).parent), job)
            return code
        state = squeue.own_state() if job is not None else "RUNNING" if is_due else None
        if state in ("RUNNING", "TIMEOUT"):
            if self._has_told_nothing():
                return FAILED
            with suppress(subprocess.SubprocessError, OSError):  # refused: the sweep submits the run again
                requeue(number, None)  # does not return
        elif state is not None:
            sys.exit(1)
        return code

    def _has_told_nothing(self) -> bool:
        """Return whether the run has come back from the queue as often as a sweep would begin it, and told of no step.

        The queue would begin it a thousand times more; of why it does not, the failure tells.
        """
        folder = RunFolder(Path(self.log).parent)
        times = int(os.environ.get("SLURM_RESTART_COUNT") or 0)
        if times < MOST_IN_VAIN or last_step(folder) >= 0:
            return False
        line = (
            f"it was begun {times + 1} times and told of no step before the time limit; allowed: a larger "
            "hydra.launcher.timeout_min, or a program that goes on in {folder} and tells its steps in {progress}"
        )
        write_failure(folder.failure, "timeout", line, self.log)
        return True

    def _performed(self, perform: Callable[[Sequence[str], str], int], number: int) -> tuple[int, bool]:
        """Execute the run; return its exit code, and whether signal `number`, of the time limit, has come."""
        if (job := squeue.own_job()) is not None:
            os.environ[JOB] = job
            print(f"job {job} of Slurm on {os.environ.get('SLURMD_NODENAME', 'this node')}")  # noqa: T201
        asked = list[int]()

        def due(received: int, frame: object) -> None:
            if not asked:
                asked.append(received)
                signal.raise_signal(signal.SIGTERM)  # training then writes a checkpoint

        signal.signal(signal.SIGTERM, StopOnce())
        signal.signal(number, due)
        try:
            return perform(self.words, self.log), bool(asked)
        except KeyboardInterrupt:  # before it was planned
            return INTERRUPTED, bool(asked)

    def checkpoint(self) -> Any:
        """Return the submission for the queue: the same work, since the run's folder holds its progress."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)
