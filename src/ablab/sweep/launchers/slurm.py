"""The Slurm launcher: runs as jobs of Slurm, or of submitit's local substitute, with a store that all nodes see."""

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

from ablab.errors import DONE, FAILED, INTERRUPTED, UserError
from ablab.store.failures import Kind
from ablab.sweep.launchers.base import POLL_SECONDS, Cause, Ending, Job, Launcher, cause_of

KINDS: dict[str, Kind] = {"OUT_OF_MEMORY": "memory", "TIMEOUT": "timeout"}
"""Slurm states of jobs that could not record a failure themselves; any other state is a kill."""

REQUEUES = 1000
"""Maximum number of time limits per run. A run resumes exactly, so the limit can be high."""


@dataclass(frozen=True)
class Queue:
    """A queue and the resources of each job. `parameters` have submitit's names, those of Slurm sbatch's names."""

    cluster: Literal["slurm", "local"]
    threads: int
    jobs: int | None
    parameters: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Check the settings before anything starts; UserError for a bad one."""
        option = f"hydra/launcher=submitit_{self.cluster}"
        if find_spec("submitit") is None:
            raise UserError(f"{option}: submitit is not installed; install it with pip install 'ablab[slurm]'")
        if self.cluster == "slurm" and shutil.which("srun") is None:
            raise UserError(f"{option}: there is no Slurm here (no srun); type it on a login node")
        for key, value in (("cpus_per_task", self.threads), ("jobs", self.jobs), *self._positive()):
            if value is not None and value < 1:
                raise UserError(f"hydra.launcher.{key}={value}: allowed: 1 and more")

    def _positive(self) -> Iterator[tuple[str, Any]]:
        yield from ((key, self.parameters.get(key)) for key in ("timeout_min", "gpus_per_node", "mem_gb"))

    def executor(self, folder: str) -> Any:
        """Return an executor that submits jobs and keeps their scripts and its logs in `folder`."""
        import submitit

        made = submitit.AutoExecutor(folder, cluster=self.cluster, **{f"{self.cluster}_max_num_timeout": REQUEUES})
        shared = {key: value for key, value in self.parameters.items() if key in COMMON}
        own = {f"slurm_{key}": value for key, value in self.parameters.items() if key not in COMMON}
        try:
            made.update_parameters(**shared, cpus_per_task=self.threads, **own if self.cluster == "slurm" else {})
        except (NameError, ValueError, TypeError, AssertionError) as error:
            raise UserError(f"hydra.launcher: {' '.join(str(error).split())}") from None
        return made


COMMON = ("name", "timeout_min", "mem_gb", "gpus_per_node", "stderr_to_stdout")
"""Parameters that Slurm and the local substitute share."""


class SubmititJobs(Launcher):
    """Executes each run as a job, submitted together as a Slurm array."""

    def __init__(
        self,
        queue: Queue,
        on_end: Callable[[Ending], None] = lambda _: None,
        on_poll: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(on_end, on_poll)
        self.queue = queue
        self.one_machine = queue.cluster == "local"
        self._submitted: dict[Any, Job] = {}

    @property
    def running(self) -> Sequence[Job]:
        """Submitted jobs, whether they have started or not."""
        return list(self._submitted.values())

    @property
    def room(self) -> int:
        """Unlimited unless `jobs` is set: Slurm queues jobs that do not fit yet."""
        return sys.maxsize if self.queue.jobs is None else self.queue.jobs - len(self._submitted)

    def start(self, jobs: Sequence[Job]) -> None:
        executor = self.queue.executor(str(jobs[0].folder.outputs / "submitit"))
        try:
            with executor.batch():
                handles = [executor.submit(self._work(job)) for job in jobs]
        except (RuntimeError, OSError) as error:  # sbatch has refused them, such as for a partition that is none
            raise UserError(f"hydra.launcher: the jobs were refused: {' '.join(str(error).split())[:300]}") from None
        self._submitted.update(zip(handles, jobs, strict=True))

    def _work(self, job: Job) -> "SubmittedWork":
        return SubmittedWork(job.line(self.queue.threads), str(job.folder.log.resolve()))

    def ended(self) -> Iterator[Ending]:
        """Yield jobs that have ended; submitit polls Slurm at growing intervals."""
        time.sleep(POLL_SECONDS)
        for handle in [handle for handle in self._submitted if handle.done()]:
            yield _ending(handle, self._submitted.pop(handle))

    def end(self, *, kill: bool) -> None:
        """Cancel all jobs: Slurm sends SIGTERM, followed by SIGKILL after a while."""
        for handle in self._submitted:
            handle.watcher.clear()  # it may ask every ten minutes by now; it begins anew with every 2 seconds
            if self.queue.cluster == "slurm":
                handle.cancel(check=False)
                continue
            with suppress(ProcessLookupError):  # submitit's cancel leaves only a second for the checkpoint
                os.kill(int(handle.job_id), signal.SIGINT if kill else signal.SIGTERM)


def _ending(handle: Any, job: Job) -> Ending:
    if str(handle.state).startswith("CANCELLED") and not handle.paths.result_pickle.exists():
        return Ending(job, INTERRUPTED)  # it may have waited; submitit would wait for its result, one after the other
    from submitit.core.utils import FailedJobError

    error = handle.exception()
    if error is None:
        code = handle.result()
        return Ending(job, code, None if code == DONE else cause_of(code, job.folder.log))
    state = str(handle.state).split()[0]
    if state == "CANCELLED":
        return Ending(job, INTERRUPTED)
    if isinstance(error, FailedJobError):
        return Ending(job, FAILED, Cause("error", _raised(error)))
    line = f"the job ended as {state}" + (f" (job {handle.job_id})" if handle.job_id else "")
    return Ending(job, FAILED, Cause(KINDS.get(state, "killed"), line))


def _raised(error: Exception) -> str:
    """Return the last line of the trace that submitit puts between two rules."""
    _, trace, *_ = [part.strip() for part in re.split(r"^-{10,}$", str(error), flags=re.MULTILINE)]
    return " ".join(trace.split("\n")[-1].split())


@dataclass
class SubmittedWork:
    """The function that a job executes.

    Shortly before the time limit, or on preemption, the run writes a checkpoint at its next step, and the job goes back
    into the queue, from where the run continues exactly.
    """

    words: Sequence[str]
    log: str

    def __call__(self) -> int:
        """Execute the run and return its exit code."""
        from ablab.sweep.launchers.task import into, perform

        into(self.log)
        number = getattr(signal, f"SIG{os.environ.get('SUBMITIT_PREEMPT_SIGNAL', 'USR2')}")
        requeue: Any = signal.getsignal(number)
        asked: list[int] = []

        def preempted(received: int, frame: object) -> None:
            if not asked:
                asked.append(received)
                signal.raise_signal(signal.SIGTERM)  # training then writes a checkpoint

        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal.signal(number, preempted)
        try:
            code = perform(self.words, self.log)
        except KeyboardInterrupt:  # before it was planned
            code = INTERRUPTED
        if asked and code == INTERRUPTED:
            requeue(number, None)  # does not return
        return code

    def checkpoint(self) -> Any:
        """Return the submission for the queue: the same work, since the run's folder holds its progress."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)
