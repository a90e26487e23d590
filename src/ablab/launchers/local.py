"""The local launcher: each run in a fresh process, so many at a time, and one that dies takes nobody along."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess

from ablab.errors import UserError
from ablab.launchers import task
from ablab.launchers.base import LOOK, Ending, Job, Launcher, cause_of
from ablab.threads import cores


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
        return cls(wanted, threads or max(1, cores() // wanted), tuple(gpus), per_gpu)

    def environments(self) -> list[dict[str, str]]:
        """One for each place."""
        if not self.gpus:
            return [{} for _ in range(self.jobs)]
        places = [{"CUDA_VISIBLE_DEVICES": str(gpu)} for _ in range(self.per_gpu) for gpu in self.gpus]
        return [places[number % len(places)] for number in range(self.jobs)]


class Processes(Launcher):
    """Forks each run from a server that has imported the heavy libraries."""

    def __init__(
        self,
        places: Places,
        on_end: Callable[[Ending], None] = lambda _: None,
        on_look: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(on_end, on_look)
        self.places = places
        self._free = deque(places.environments())
        self._running: dict[int, _Running] = {}
        self._context = multiprocessing.get_context("forkserver")
        self._has_server = False

    @property
    def running(self) -> Sequence[Job]:
        """Jobs that were started and have not ended."""
        return [running.job for running in self._running.values()]

    @property
    def room(self) -> int:
        """Places that are free."""
        return len(self._free)

    def start(self, jobs: Sequence[Job]) -> None:
        """A process for each; the server is started with what the first of them need."""
        if not self._has_server:  # no oftener, since starting it is deaf to SIGTERM for a moment
            _start_server(jobs)
            self._has_server = True
        for job in jobs:
            environment = self._free.popleft()
            words = [*job.words, f"trainer.threads={self.places.threads}", "trainer.progress=false"]
            process = self._context.Process(target=task.work, args=(words, str(job.folder.log), environment))
            process.start()  # the first time, while the server imports, long enough for somebody to stop it
            self._running[process.sentinel] = _Running(job, process, environment)

    def ended(self) -> Iterator[Ending]:
        """Those whose process is gone."""
        for sentinel in wait(list(self._running), timeout=LOOK):
            assert isinstance(sentinel, int)
            running = self._running.pop(sentinel)
            running.process.join()
            code = running.process.exitcode
            assert code is not None
            self._free.append(running.environment)
            yield Ending(running.job, code, cause_of(code, running.job.folder.log))

    def end(self, *, kill: bool) -> None:
        """By a signal to each."""
        for running in self._running.values():
            with suppress(ProcessLookupError):  # it has ended, and nobody has looked yet
                if running.process.pid is not None:
                    os.kill(running.process.pid, signal.SIGKILL if kill else signal.SIGINT)


@dataclass(frozen=True)
class _Running:
    job: Job
    process: ForkServerProcess
    environment: dict[str, str]


def _start_server(jobs: Sequence[Job]) -> None:
    """Deaf to SIGTERM, as it is to SIGINT: sent to the whole group, it must not take the server from its runs.

    Where it runs already, nothing happens.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may set handlers; the first job then starts the server
    modules = dict.fromkeys(module for job in jobs for module in job.modules)
    multiprocessing.get_context("forkserver").set_forkserver_preload([*task.PRELOADED, *modules])
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGTERM, before)
