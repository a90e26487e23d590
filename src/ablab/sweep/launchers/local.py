"""The local launcher: each run in a fresh process, several at a time, so that a crash affects no other run."""

import multiprocessing
import os
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from multiprocessing.util import get_temp_dir

from ablab.code.machine import cores, memory
from ablab.errors import INTERRUPTED, UserError
from ablab.sweep.launchers import task
from ablab.sweep.launchers.base import POLL_SECONDS, Cause, Ending, Job, Launcher, cause_of
from ablab.text import how_many


@dataclass(frozen=True)
class Places:
    """The number of concurrent runs and the resources of each.

    `threads`: of one run. `gpus`: indices among those that this process sees, as torch counts, with `per_gpu` runs on
    each.
    """

    jobs: int
    threads: int
    gpus: Sequence[int] = ()
    per_gpu: int = 1

    @classmethod
    def of(cls, jobs: int | None, threads: int | None, gpus: Sequence[int], per_gpu: int) -> "Places":
        """Divide the cores among the jobs; with GPUs, default to one job per place. UserError for values below 1."""
        for key, value in (("jobs", jobs), ("threads", threads), ("per_gpu", per_gpu)):
            if value is not None and value < 1:
                raise UserError(f"hydra.launcher.{key}={value}: allowed: 1 and more")
        _named(gpus)
        wanted = jobs or (len(gpus) * per_gpu if gpus else 1)
        return cls(wanted, threads or max(1, cores() // wanted), tuple(gpus), per_gpu)

    @classmethod
    def for_runs(cls, runs: int, need: int, threads: int | None, before: int | None = None) -> "Places":
        """Choose how many of a study's runs are made at a time.

        `need`: bytes of one. `threads`: of each, if typed; `before`: of those that were made. The study and the machine
        decide, not what is left of the one or free of the other: the line typed again after a stop trains by as many
        threads, and so to the same digits, and arms that are added are made like the others.
        """
        threads = threads or (before if before is not None and before <= cores() else None)

        def rounds(jobs: int) -> float:
            return ceil(runs / jobs) * (ALONE + (1 - ALONE) / (threads or cores() // jobs))

        most = min(runs, cores() // (threads or 1), int(OF_MEMORY * memory() // need))
        jobs = min(range(1, max(1, most) + 1), key=rounds)
        return cls(jobs, threads or max(1, cores() // jobs))

    def said(self, need: int) -> str:
        """Return what was chosen for runs of so many bytes, and why."""
        at_a_time = "One run" if self.jobs == 1 else f"{self.jobs} runs"
        machine = f"{how_many(cores(), 'core')}, {memory() / 2**30:.0f} GiB of memory"
        each = f"about {need / 2**30:.1f} GiB a run"
        return f"{at_a_time} at a time, {how_many(self.threads, 'thread')} each: {machine}, {each} {OTHERS}"

    def environments(self) -> list[dict[str, str]]:
        """Return the environment variables of each place."""
        if not self.gpus:
            return [{} for _ in range(self.jobs)]
        places = [{VISIBLE: name} for _ in range(self.per_gpu) for name in _named(self.gpus)]
        return [places[number % len(places)] for number in range(self.jobs)]


ALONE = 0.25
"""The share of a run's time that more threads do not shorten. Of `small` it is 0.40 and of `tiny` 0.58, on two cores; a
smaller one chooses several at a time only where they gain on models of larger products, too."""

OF_MEMORY = 0.7
"""The share of the memory that runs at a time may need by estimate."""

OTHERS = "(hydra.launcher.jobs=N for another number)"

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""The variable that lists the GPUs which a process sees, by index or by a name of their own; without it, all."""


def _named(gpus: Sequence[int]) -> list[str]:
    """Return how CUDA names these GPUs, of those that this process sees; UserError for one that it does not see."""
    listed = os.environ.get(VISIBLE)
    if listed is None:
        return [str(gpu) for gpu in gpus]
    names = [name.strip() for name in listed.split(",") if name.strip()]
    for gpu in gpus:
        if not 0 <= gpu < len(names):
            allowed = f"0 to {len(names) - 1}, places in that list" if names else "none"
            raise UserError(f"hydra.launcher.gpus: {gpu} is not in {VISIBLE}={listed}; allowed: {allowed}")
    return [names[gpu] for gpu in gpus]


class LocalProcesses(Launcher):
    """Forks each run from a server process that has imported the heavy libraries."""

    def __init__(self, places: Places) -> None:
        super().__init__()
        self.places = places
        self._free = deque(places.environments())
        self._running: dict[int, _Running] = {}
        self._context = multiprocessing.get_context("forkserver")
        self._has_server = False

    @property
    def running(self) -> Sequence[Job]:
        return [running.job for running in self._running.values()]

    @property
    def room(self) -> int:
        """The number of free places."""
        return len(self._free)

    def start(self, jobs: Sequence[Job]) -> None:
        """Start a process for each job; the first call starts the server."""
        if not self._has_server:  # only once, since SIGTERM is ignored while it starts
            start_server(task.preloaded(jobs[0].words if jobs else ()))
            self._has_server = True
        for job in jobs:
            environment = self._free.popleft()
            words = job.line(self.places.threads)
            written = job.folder.log.stat().st_size if job.folder.log.exists() else 0
            process = self._context.Process(target=task.work, args=(words, str(job.folder.log), environment))
            process.start()  # the first call lasts until the server has imported; a stop may come meanwhile
            self._running[process.sentinel] = _Running(job, process, environment, written)

    def ended(self) -> Iterator[Ending]:
        """Yield the jobs whose process has ended."""
        for sentinel in wait(list(self._running), timeout=POLL_SECONDS):
            assert isinstance(sentinel, int)
            running = self._running.pop(sentinel)
            running.process.join()
            code = running.process.exitcode
            assert code is not None
            self._free.append(running.environment)
            if code == LOST:
                yield Ending(running.job, INTERRUPTED, Cause("killed", "the server of its process was killed"))
            else:
                yield Ending(running.job, code, cause_of(code, running.job.folder.log, running.written))

    def end(self, *, kill: bool) -> None:
        """Send a signal to each process: SIGINT, or SIGKILL to kill."""
        for running in self._running.values():
            with suppress(ProcessLookupError):  # it has ended since the last check
                if running.process.pid is not None:
                    os.kill(running.process.pid, signal.SIGKILL if kill else signal.SIGINT)


LOST = 255
"""The exit code that multiprocessing gives to processes whose server has ended: they go on, to their checkpoint."""


@dataclass(frozen=True)
class _Running:
    """A process. `written`: bytes of its log from earlier attempts."""

    job: Job
    process: ForkServerProcess
    environment: dict[str, str]
    written: int


def start_server(preloaded: list[str]) -> None:
    """Start the server, deaf to SIGTERM and SIGINT: a signal to the whole group must not take it from its processes.

    If it already runs, nothing happens. `preloaded`: the modules that it imports for all of them.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may set handlers; the first process then starts the server
    multiprocessing.get_context("forkserver").set_forkserver_preload(preloaded)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Ctrl-C reaches the server too, and would end its imports in a traceback. A process hears it once it can, by
    # `task.hear_launcher`. The tracker that the server needs ends the blocking if it begins in the midst of it.
    resource_tracker.ensure_running()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        with _short_sockets():
            forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGTERM, before)


LONGEST = 70
"""Bytes of a folder's name below which multiprocessing's sockets have room: their paths have 103 at most on macOS."""


@contextmanager
def _short_sockets() -> Iterator[None]:
    """Let multiprocessing choose its folder, where it makes sockets: in /tmp, if TMPDIR is too long a name for them."""
    before = tempfile.tempdir
    if len(os.fsencode(tempfile.gettempdir())) > LONGEST:
        tempfile.tempdir = "/tmp"
    try:
        get_temp_dir()
        yield
    finally:
        tempfile.tempdir = before
