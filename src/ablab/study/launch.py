"""The local launcher: each run in a fresh process, so many at a time, and one that dies takes nobody along."""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple

from ablab.errors import UserError
from ablab.exits import BUSY, DONE, INTERRUPTED
from ablab.failure import Kind, read_failure, write_failure
from ablab.record import now
from ablab.store import RunFolder
from ablab.study import child

LOOK = 0.25
"""Seconds between two looks at the children."""


class Job(NamedTuple):
    """A run to be made: where it lies, what its launcher calls it, the words that make it."""

    folder: RunFolder
    key: str
    words: Sequence[str]


class Ending(NamedTuple):
    """How a job's process ended. `code`: one of ablab.exits, or minus a signal's number."""

    job: Job
    code: int
    seconds: float


@dataclass(frozen=True)
class Places:
    """How many runs at a time, and what each gets. `threads`: of one run. `gpus`: indices, `per_gpu` runs on each."""

    jobs: int
    threads: int
    gpus: Sequence[int] = ()
    per_gpu: int = 1

    @classmethod
    def of(cls, jobs: int | None, threads: int | None, gpus: Sequence[int], per_gpu: int) -> "Places":
        """Cores are divided among the jobs; on GPUs there are as many jobs as places, unless said otherwise."""
        for key, value in (("jobs", jobs), ("threads", threads), ("per_gpu", per_gpu)):
            if value is not None and value < 1:
                raise UserError(f"hydra.launcher.{key}={value}: allowed: 1 and more")
        wanted = jobs or (len(gpus) * per_gpu if gpus else 1)
        return cls(wanted, threads or max(1, _cores() // wanted), tuple(gpus), per_gpu)

    def environments(self) -> list[dict[str, str]]:
        """One for each place."""
        if not self.gpus:
            return [{} for _ in range(self.jobs)]
        places = [{"CUDA_VISIBLE_DEVICES": str(gpu)} for _ in range(self.per_gpu) for gpu in self.gpus]
        return [places[number % len(places)] for number in range(self.jobs)]


@dataclass
class Launcher:
    """Runs jobs. `on_end` hears of each as it ends, `on_look` a few times a second."""

    places: Places
    on_end: Callable[[Ending], None] = lambda _: None
    on_look: Callable[[], None] = lambda: None
    stopping: int = 0
    """How often somebody has asked it to stop: once, the runs write a checkpoint and end; twice, they are killed."""
    interrupted: bool = False
    """Whether it was a person, by a signal."""
    _running: dict[int, "_Running"] = field(default_factory=dict)

    def run(self, jobs: Sequence[Job]) -> list[Ending]:
        """Every job once, in order, unless it is stopped; in the order in which they end."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(child.PRELOADED)
        _start_server()
        waiting, free = deque(jobs), deque(self.places.environments())
        endings: list[Ending] = []
        with self._interruptible():
            while self._running or (waiting and not self.stopping):
                while waiting and free and not self.stopping:
                    self._start(context, waiting.popleft(), free.popleft())
                for ending, environment in self._ended():
                    free.append(environment)
                    endings.append(ending)
                    self.on_end(ending)
                self.on_look()
        return endings

    def _start(self, context: Any, job: Job, environment: dict[str, str]) -> None:
        words = [*job.words, f"trainer.threads={self.places.threads}", "trainer.progress=false"]
        process = context.Process(target=child.work, args=(words, str(job.folder.log), environment))
        attempts = _attempts(job)
        process.start()  # the first time, while the server imports, long enough for somebody to stop it
        self._running[process.sentinel] = _Running(job, process, environment, time.monotonic(), attempts)
        if self.stopping:
            _signal(process, signal.SIGINT)

    def _ended(self) -> Iterator[tuple[Ending, dict[str, str]]]:
        for sentinel in wait(list(self._running), timeout=LOOK):
            assert isinstance(sentinel, int)
            running = self._running.pop(sentinel)
            running.process.join()
            code = running.process.exitcode
            assert code is not None
            if (
                code not in (DONE, BUSY, INTERRUPTED)
                and not self.stopping
                and _attempts(running.job) == running.attempts
            ):
                _note(running.job, code)
            yield Ending(running.job, code, time.monotonic() - running.began), running.environment

    def stop(self) -> None:
        """The first time gently."""
        self.stopping += 1
        for running in self._running.values():
            _signal(running.process, signal.SIGINT if self.stopping == 1 else signal.SIGKILL)

    def _on_signal(self, *_: object) -> None:
        self.interrupted = True
        self.stop()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # Python delivers signals to the main thread alone
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            signal.signal(number, self._on_signal)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass(frozen=True)
class _Running:
    job: Job
    process: ForkServerProcess
    environment: dict[str, str]
    began: float
    attempts: int


def _signal(process: ForkServerProcess, number: int) -> None:
    with suppress(ProcessLookupError):  # it has ended, and nobody has looked yet
        if process.pid is not None:
            os.kill(process.pid, number)


def _start_server() -> None:
    """Deaf to SIGTERM, as it is to SIGINT: sent to the whole group, it must not take the server from its runs."""
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may set handlers; the first job then starts the server
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGTERM, before)


def _attempts(job: Job) -> int:
    failure = read_failure(job.folder.failure)
    return failure.attempts if failure else 0


def _note(job: Job, code: int) -> None:
    """What the process could not say itself. Linux kills with SIGKILL what takes the last memory."""
    if code < 0:
        name = signal.Signals(-code).name
        line = f"the process was killed by {name}" + (" (out of memory?)" if code == -signal.SIGKILL else "")
    else:
        line = _last_line(job.folder.log) or f"the process ended with {code}"
    note_failure(job.folder, "killed" if code < 0 else "error", line, str(job.folder.log))


def note_failure(folder: RunFolder, kind: Kind, line: str, log: str | None) -> None:
    """For a run that could not write it down itself."""
    with suppress(OSError):  # where nothing can be written, the exit code of the sweep must do
        folder.path.mkdir(parents=True, exist_ok=True)
        write_failure(folder.failure, kind, line, log, now())


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].removeprefix("error: ") if lines else ""


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
