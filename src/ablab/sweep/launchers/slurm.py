"""The Slurm launcher: runs as jobs of Slurm, or of submitit's local substitute, with a store that all nodes see."""

import math
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from typing import Any, Literal

from ablab.errors import DONE, FAILED, INTERRUPTED, LostError, UserError
from ablab.store.failures import Kind
from ablab.sweep.launchers import squeue
from ablab.sweep.launchers.base import POLL_SECONDS, Cause, Ending, Job, Launcher, cause_of
from ablab.sweep.launchers.jobs import bury, forget, in_queue, keep
from ablab.sweep.launchers.submitted import SubmittedWork

KINDS: dict[str, Kind] = {"OUT_OF_MEMORY": "memory", "TIMEOUT": "timeout"}
"""Slurm states of jobs that could not record a failure themselves; any other state is a kill."""

SIGNAL_DELAY = 120
"""Seconds before the time limit at which Slurm signals a run that names no `signal_delay_s`."""

START = 120
"""Seconds of a time limit that no step may have: Slurm signals up to 60 too early, and a run has to start."""

SMALLEST = 0.001
"""Gigabytes of a job: less than a megabyte would be none, by which Slurm means all memory of the node."""

RETRY = 10.0
"""Seconds between two submissions of what was not taken."""

AWAY = 600.0
"""Seconds for which a controller that does not answer is tried again."""

NO_CONTROLLER = re.compile("Unable to contact|Socket timed out|temporarily unavailable|[Cc]onnection refused")
TOO_MANY = re.compile("SubmitJob|job submit limit|Job violates accounting/QOS policy|Invalid job array specification")

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
        positive = {key: self.parameters.get(key) for key in ("timeout_min", "gpus_per_node")}
        for key, value in {"cpus_per_task": self.threads, "jobs": self.jobs, **positive}.items():
            if value is not None and value < 1:
                raise UserError(f"hydra.launcher.{key}={value}: allowed: 1 and more")
        if (memory := self.parameters.get("mem_gb")) is not None and memory < SMALLEST:
            raise UserError(f"hydra.launcher.mem_gb={memory:g}: allowed: {SMALLEST:g} and more")
        if self.cluster == "local" and self.parameters.get("gpus_per_node"):
            raise UserError(
                f"hydra.launcher.gpus_per_node: {option} puts every job on the first GPUs; allowed: "
                "hydra.launcher.gpus of the usual launcher, or hydra/launcher=submitit_slurm"
            )
        if self.cluster == "slurm":
            self._check_limit()

    def _check_limit(self) -> None:
        """Refuse a time limit that leaves no time for a step: the run would return to the queue without end."""
        limit, delay = self.parameters.get("timeout_min"), self.parameters.get("signal_delay_s", SIGNAL_DELAY)
        if limit is not None and limit * 60 < delay + START:
            raise UserError(
                f"hydra.launcher.timeout_min={limit}: with signal_delay_s={delay} no time is left for a step; "
                f"allowed: {math.ceil((delay + START) / 60)} and more, or a smaller hydra.launcher.signal_delay_s"
            )

    def executor(self, folder: str, name: str) -> Any:
        """Return an executor that submits jobs, by default of this name, and keeps their scripts and its logs in
        `folder`.
        """
        import submitit

        if self.cluster == "slurm" and "%" in folder:
            raise UserError(f"outputs: {folder}: Slurm replaces what follows % in the path of a log; allowed: no %")
        own = {f"slurm_{key}": value for key, value in self.parameters.items() if key not in COMMON}
        python = {key: own.pop(key) for key in ("slurm_python",) if key in own}
        limits = {f"{self.cluster}_max_num_timeout": REQUEUES}
        made = submitit.AutoExecutor(folder, cluster=self.cluster, **limits, **python)
        shared = {"name": name, **{key: value for key, value in self.parameters.items() if key in COMMON}}
        others = dict(self.parameters.get("additional_parameters", {}))
        if not others.keys() & REQUEUE:  # what is pre-empted then returns to the queue, whatever the cluster's default
            own["slurm_additional_parameters"] = {"requeue": True, **others}
        try:
            made.update_parameters(**shared, cpus_per_task=self.threads, **own if self.cluster == "slurm" else {})
        except (NameError, ValueError, TypeError, AssertionError) as error:
            raise UserError(f"hydra.launcher: {' '.join(str(error).split())}") from None
        return made


REQUEUE = {"requeue", "no-requeue"}
"""Options of sbatch that say whether a job may return to the queue."""

COMMON = ("name", "timeout_min", "mem_gb", "gpus_per_node", "stderr_to_stdout")
"""Parameters that Slurm and the local substitute share."""


class SubmititJobs(Launcher):
    """Executes each run as a job, submitted together as a Slurm array."""

    def __init__(self, queue: Queue) -> None:
        super().__init__()
        self.queue = queue
        self.one_machine = queue.cluster == "local"
        self._submitted: dict[Any, Job] = {}
        self._held: list[Job] = []
        self._portion = sys.maxsize
        self._tried = self._taken = 0.0
        self._took = self._is_told = False
        self._queued = squeue.Queued()

    @property
    def running(self) -> Sequence[Job]:
        """Jobs that have not ended, whether they have started, wait, or are yet to be submitted."""
        return [*self._submitted.values(), *self._held]

    @property
    def room(self) -> int:
        """Unlimited unless `jobs` is set: Slurm queues jobs that do not fit yet."""
        return sys.maxsize if self.queue.jobs is None else self.queue.jobs - len(self.running)

    def start(self, jobs: Sequence[Job]) -> None:
        """Submit jobs, in as few arrays as the cluster takes; what it does not take now is held for later."""
        if self.queue.cluster == "slurm" and self._portion == sys.maxsize:
            self._portion = squeue.cluster().largest_array
        self._held.extend(jobs)
        self._taken = time.monotonic()
        self._submit()

    def _submit(self) -> None:
        """Submit what is held. UserError for what the cluster refuses, LostError if its controller stays away."""
        if self.queue.cluster == "slurm":
            self._adopt()
        while self._held and not self.stopping:
            portion, self._tried = self._held[: self._portion], time.monotonic()
            try:
                handles = self._array(portion)
            except (RuntimeError, OSError) as error:
                line = " ".join(str(error).split())[:300]
                if TOO_MANY.search(line) and len(portion) > 1:
                    self._portion = len(portion) // 2
                    continue
                self._hold(line)
                return
            self._submitted.update(zip(handles, portion, strict=True))
            if self.queue.cluster == "slurm":
                for handle, job in zip(handles, portion, strict=True):
                    keep(job.folder, handle.job_id)
            del self._held[: len(portion)]
            self._taken, self._took, self._is_told = time.monotonic(), True, False

    def _adopt(self) -> None:
        """Follow those of the held jobs that an earlier command has submitted, and that are in the queue still."""
        from submitit import SlurmJob

        found = in_queue(dict(enumerate(job.folder for job in self._held)))
        handles: dict[int, Any] = {one: SlurmJob(_place(self._held[one]), each.id) for one, each in found.items()}
        adopted = {number: handle for number, handle in handles.items() if not _has_result(handle)}
        if adopted:
            self.say(f"In the queue already: {', '.join(found[number].words for number in adopted)}")
        self._submitted.update({handle: self._held[number] for number, handle in adopted.items()})
        self._held = [job for number, job in enumerate(self._held) if number not in adopted]

    def _hold(self, line: str) -> None:
        """Keep what is held for another try if `line`, the refusal, is one that passes; raise the error otherwise."""
        late = time.monotonic() - self._taken > AWAY
        if NO_CONTROLLER.search(line):
            if late:
                raise LostError(f"hydra.launcher: Slurm does not answer: {line}; the same line, typed again, goes on")
            if not self._is_told:
                self.say(f"Slurm does not answer ({line}); submissions are tried again for {AWAY / 60:g} minutes")
            self._is_told = True
        elif not TOO_MANY.search(line) or not (self._submitted or (self._took and not late)):
            raise UserError(f"hydra.launcher: the jobs were refused: {line}")

    def _array(self, jobs: Sequence[Job]) -> list[Any]:
        executor = self.queue.executor(_place(jobs[0]), self.study)
        # submitit prints what sbatch says of a refusal, which the error says too.
        with redirect_stderr(StringIO()), executor.batch():
            return [executor.submit(self._work(job)) for job in jobs]

    def _work(self, job: Job) -> SubmittedWork:
        return SubmittedWork(job.line(self.queue.threads), str(job.folder.log.resolve()))

    def ended(self) -> Iterator[Ending]:
        """Yield jobs that have ended, and submit those that were held."""
        time.sleep(POLL_SECONDS)
        if self.stopping:
            yield from (Ending(job, INTERRUPTED) for job in self._held)
            self._held = []
        if self.queue.cluster == "local":
            for handle in [handle for handle in self._submitted if handle.done()]:
                yield _ending(handle, self._submitted.pop(handle))
            return
        for handle in [handle for handle in self._submitted if _has_result(handle)]:
            forget(self._submitted[handle].folder, handle.job_id)
            yield _ending(handle, self._submitted.pop(handle))
        ids = {handle.job_id: handle for handle in self._submitted}
        for gone, state in self._queued.gone(ids, bool(self.stopping)).items() if ids else ():
            if state is not None or not self.stopping:  # otherwise Slurm may only not have answered
                bury(self._submitted[ids[gone]].folder, gone)
            yield self._lost(ids[gone], self._submitted.pop(ids[gone]), state or squeue.state_of(gone))
        if self._held and time.monotonic() - self._tried > RETRY:
            self._submit()

    def _lost(self, handle: Any, job: Job, state: str | None) -> Ending:
        """Return the ending of a job that left the queue without a result, in this state if Slurm knows it."""
        told = squeue.last_error(handle.paths.stderr)
        never_began = state is None and not handle.paths.stderr.exists()
        if self.stopping:
            return Ending(job, INTERRUPTED)
        if never_began or (state or "").startswith("CANCELLED"):
            return Ending(job, INTERRUPTED, Cause("killed", f"job {handle.job_id} was cancelled"), is_final=True)
        how = f"the job ended as {state}" if state else "the job left the queue without a result"
        line = f"{how} (job {handle.job_id})" + (f": {told}; see {handle.paths.stderr}" if told else "")
        if state == "PREEMPTED" or squeue.TERMINATED.search(told or ""):
            return Ending(job, INTERRUPTED, Cause("killed", line))
        memory = state == "OUT_OF_MEMORY" or bool(squeue.OUT_OF_MEMORY.search(told or ""))
        return Ending(job, FAILED, Cause("memory" if memory else KINDS.get(state or "", "killed"), line))

    def end(self, *, kill: bool) -> None:
        """Cancel all jobs: Slurm sends SIGTERM, followed by SIGKILL after a while."""
        self._queued.hurry()
        for handle in self._submitted:
            if self.queue.cluster == "slurm":
                handle.cancel(check=False)
                continue
            with suppress(ProcessLookupError):  # submitit's cancel leaves only a second for the checkpoint
                os.kill(int(handle.job_id), signal.SIGINT if kill else signal.SIGTERM)


def _place(job: Job) -> str:
    """Return the folder of submitit's files in the store of a run."""
    return str(job.folder.outputs / "submitit")


def _has_result(handle: Any) -> bool:
    folder = handle.paths.folder
    with suppress(OSError):  # NFS then looks again at what the folder holds
        folder.chmod(folder.stat().st_mode)
    return bool(handle.paths.result_pickle.exists())


def _ending(handle: Any, job: Job) -> Ending:
    from submitit.core.utils import FailedJobError

    error = handle.exception()
    if error is None:
        code = handle.result()
        return Ending(job, code, None if code == DONE else cause_of(code, job.folder.log))
    if isinstance(error, FailedJobError):
        return Ending(job, FAILED, Cause("error", _raised(error)))
    state = str(handle.state).split()[0]
    line = f"the job ended as {state}" + (f" (job {handle.job_id})" if handle.job_id else "")
    return Ending(job, FAILED, Cause(KINDS.get(state, "killed"), line))


def _raised(error: Exception) -> str:
    """Return the last line of the trace that submitit puts between two rules."""
    _, trace, *_ = [part.strip() for part in re.split(r"^-{10,}$", str(error), flags=re.MULTILINE)]
    return " ".join(trace.split("\n")[-1].split())
