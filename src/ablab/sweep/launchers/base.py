"""The base class of launchers, which starts jobs as places become free, reports their endings and stops them."""

import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ablab.code.machine import signal_name
from ablab.errors import BUSY, DONE, FAILED, INTERRUPTED, STOPPED, UNSUITABLE
from ablab.store.failures import Kind, read_failure, write_failure
from ablab.store.run_folder import RunFolder

POLL_SECONDS = 0.25
"""Seconds between two checks of running jobs."""


THREADS = "trainer.threads="


class Job(NamedTuple):
    """A run to execute: its folder, the launcher's key for it, and its words."""

    folder: RunFolder
    key: str
    words: Sequence[str]

    def line(self, threads: int) -> list[str]:
        """Return the words for a process without a terminal, with so many threads unless the words say how many.

        Such a word of the launcher's is the last one, by which a run that continues tells it from a typed one.
        """
        typed = any(word.startswith(THREADS) for word in self.words)
        return [*self.words, "trainer.progress=false", *([] if typed else [f"{THREADS}{threads}"])]


class Cause(NamedTuple):
    """The reason why a job failed, if the job could not record it itself."""

    kind: Kind
    line: str


class Ending(NamedTuple):
    """The end of a job. `code`: an exit code of ablab.errors, or minus a signal's number.

    `is_final`: somebody wants the run not to be made now, so that it is not begun again.
    """

    job: Job
    code: int
    cause: Cause | None = None
    is_final: bool = False


class Launcher(ABC):
    """Executes jobs. `on_end` is called with each ending, `on_poll` a few times per second."""

    def __init__(self) -> None:
        self.on_end: Callable[[Ending], None] = lambda _: None
        self.on_poll: Callable[[], None] = lambda: None
        self.say: Callable[[str], None] = lambda _: None
        """Tells the user a line."""
        self.study = "ablab"
        """The name of what the jobs belong to."""
        self.stopping = 0
        """Number of requests to stop. After one, the runs write a checkpoint and end; after two, they are killed."""
        self.interrupted = False
        """True if the request came by a signal."""
        self.refused: str | None = None
        """What the machine lacks for all runs, as reported by the first of them; None if nothing."""
        self.one_machine = True
        """False if runs have machines of their own, of which a single one may be unsuitable."""
        self._attempts: dict[str, int] = {}
        self._refusals: list[Ending] = []
        self._suited = False

    def run(self, jobs: Iterable[Job]) -> list[Ending]:
        """Execute every job once, in order, unless stopped; return their endings in the order in which they ended.

        The next job is taken from the iterator only when there is room for it.
        """
        waiting = iter(jobs)
        endings: list[Ending] = []
        with self._interruptible(), self.open():
            more = True
            while self.running or (more and not self.stopping):
                if more and not self.stopping:
                    more = self._start_what_fits(waiting)
                for ended in self.ended() if self.running else ():
                    for ending in self._settled(ended):
                        self._note(ending)
                        endings.append(ending)
                        self.on_end(ending)
                self.on_poll()
        return endings

    def open(self) -> AbstractContextManager[object]:
        """Return a context with the resources that the jobs need."""
        return nullcontext()

    @property
    @abstractmethod
    def running(self) -> Sequence[Job]:
        """Jobs that were started and have not ended."""

    @property
    @abstractmethod
    def room(self) -> int:
        """The number of jobs that may be started now."""

    @abstractmethod
    def start(self, jobs: Sequence[Job]) -> None:
        """Start these jobs, at most as many as there is room for."""

    @abstractmethod
    def ended(self) -> Iterator[Ending]:
        """Yield jobs that ended since the last call, waiting for about POLL_SECONDS. Called only while jobs run."""

    @abstractmethod
    def end(self, *, kill: bool) -> None:
        """Make all running jobs write a checkpoint and end, or kill them."""

    def stop(self) -> None:
        """Stop all jobs: gently the first time, by a kill the second."""
        self.stopping += 1
        self.end(kill=self.stopping > 1)

    def _start_what_fits(self, waiting: Iterator[Job]) -> bool:
        """Start as many jobs as there is room for; False when there are no more."""
        room = self.room
        jobs = list(islice(waiting, room))
        if jobs:
            self._attempts.update({job.key: _attempts(job) for job in jobs})
            self.start(jobs)
            if self.stopping:  # requested while they were being started
                self.end(kill=self.stopping > 1)
        return len(jobs) == room

    def _settled(self, ending: Ending) -> Iterator[Ending]:
        """Yield the endings whose meaning is known with this one; stop all jobs if the machine is unsuitable.

        Every run makes the same demands on it. Of several machines one may be at fault: the runs that it refused have
        failed if any other ends well, and until no other is left that might, a refusal waits.
        """
        refuses = ending.code == UNSUITABLE and ending.cause is not None
        if refuses:
            self._refusals.append(ending)
        self._suited = self._suited or ending.code in (DONE, STOPPED)
        if self.one_machine or self._suited or not self.running:
            for refusal in self._refusals:
                yield self._judged(refusal)
            self._refusals = []
        if not refuses:
            yield ending

    def _judged(self, refusal: Ending) -> Ending:
        """Return a refusal of one machine among several as a failure; if there is no other, stop all jobs."""
        if self._suited and not self.one_machine:
            return refusal._replace(code=FAILED)
        if not self.stopping and refusal.cause is not None:
            self.refused = refusal.cause.line
            self.stop()
        return refusal

    def _note(self, ending: Ending) -> None:
        """Record a failure that the run could not record itself."""
        if ending.cause is None or ending.code in (DONE, BUSY, INTERRUPTED, STOPPED, UNSUITABLE) or self.stopping:
            return
        if _attempts(ending.job) == self._attempts[ending.job.key]:
            log = ending.job.folder.log
            note_failure(ending.job.folder, *ending.cause, str(log) if log.exists() else None)

    def _on_signal(self, received: int, frame: object) -> None:
        """Stop; a second Ctrl-C kills. A second SIGTERM changes nothing: a queue sends two within milliseconds."""
        self.interrupted = True
        if received == signal.SIGINT or not self.stopping:
            self.stop()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # Python delivers signals only to the main thread
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            signal.signal(number, self._on_signal)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def note_failure(folder: RunFolder, kind: Kind, line: str, log: str | None) -> None:
    """Record a failure for a run that could not do so itself."""
    with suppress(OSError):  # if nothing can be written, the exit code of the sweep must suffice
        write_failure(folder.failure, kind, line, log)


def cause_of(code: int, log: Path, written: int = 0) -> Cause:
    """Return the cause from exit code and log, of which earlier attempts have written the first bytes.

    Linux sends SIGKILL to a process that exhausts memory.
    """
    if code < 0:
        name = signal_name(-code)
        return Cause("killed", f"the process was killed by {name}" + (" (out of memory?)" if code == -9 else ""))
    return Cause("error", _last_line(log, written) or f"the process ended with {code}, and wrote nothing into {log}")


def _attempts(job: Job) -> int:
    failure = read_failure(job.folder.failure)
    return failure.attempts if failure else 0


def _last_line(log: Path, written: int) -> str:
    try:
        lines = log.read_bytes()[written:].decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].removeprefix("error: ") if lines else ""
