"""One run of a sweep, executed by any launcher: its exit code tells the outcome, failure.json the reason."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING

from ablab.errors import (
    BAD_INPUT,
    BUSY,
    DONE,
    FAILED,
    INTERRUPTED,
    STOPPED,
    UNSUITABLE,
    BusyError,
    MachineError,
    PartError,
    UserError,
    lacking,
)
from ablab.store.failures import kind_of, write_failure
from ablab.tasks.registry import task_in_words

if TYPE_CHECKING:
    from ablab.tasks.plan import Planned


def preloaded(words: Sequence[str]) -> list[str]:
    """Return modules that the local server of processes imports once for all runs, of which these are the words of one.

    Runs of a task that needs no torch do without.
    """
    return [*task_in_words(words).modules, "ablab.sweep.launchers.task", "ablab.config.warm"]


def perform(words: Sequence[str], log: str | None) -> int:
    """Compose and execute one run. Its errors are not raised, since other runs must go on."""
    from ablab.code.machine import keep_memory, settle_in
    from ablab.run import run
    from ablab.tracking.console import Console

    began = time.perf_counter()
    keep_memory()
    settle_in()
    try:
        planned = _planned(words if log is None else _without_threads(words), words)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return BAD_INPUT
    if log is not None and Path(log).parent.name != planned.run_id:
        return _of_another_run(planned.run_id, Path(log))
    try:
        if run(planned, Console(bars=False), began) is not None:
            return DONE
        return STOPPED if _stopped_by_search(planned.config.search_trial) else _interrupted()
    except BusyError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return BUSY
    except KeyboardInterrupt:
        return _interrupted()
    except MachineError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return UNSUITABLE
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (what := lacking(error)) is not None:
            print(f"error: {what}", file=sys.stderr)  # noqa: T201
            return UNSUITABLE
        if not isinstance(error, UserError) or isinstance(error, PartError):
            traceback.print_exc()
        message = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        line = " ".join(message.split("\n")[0].split())
        print(f"error: {line}", file=sys.stderr)  # noqa: T201
        if not planned.folder.has_begun:  # else nothing could list it, show it or remove it
            planned.folder.begin(planned.recipe)
        write_failure(planned.folder.failure, kind_of(error), line, log)
        return FAILED


def _interrupted() -> int:
    """Say last which signal has stopped the run, which the sweep repeats if it gives the run up."""
    from ablab.code.machine import stopped_by

    print(f"stopped by {stopped_by[-1] if stopped_by else 'a signal'}")  # noqa: T201
    return INTERRUPTED


def _of_another_run(run_id: str, log: Path) -> int:
    """Record that the run of this log cannot be made: its words mean another one since they were planned."""
    from ablab.store.run_folder import RunFolder

    line = (
        f"its words now mean {run_id}: the code of a part, an option's file, an input or the text has changed since "
        "the sweep began, or a program has another interpreter or container here; type the line again, where these "
        "are the same"
    )
    print(f"error: {line}", file=sys.stderr)  # noqa: T201
    write_failure(RunFolder(log.parent).failure, "error", line, str(log))
    return FAILED


def _without_threads(words: Sequence[str]) -> Sequence[str]:
    """Return the words without what a launcher says of threads, which is its last word; a user's stand before."""
    from ablab.sweep.launchers.base import THREADS

    return words[:-1] if words[-1].startswith(THREADS) else words


def _planned(typed: Sequence[str], words: Sequence[str]) -> "Planned":
    """Plan the run. A resumed run takes the threads of its checkpoint, not those that this launcher has for it."""
    from ablab.config import compose
    from ablab.tasks.plan import plan

    planned = plan(compose(words))
    if planned.folder.continues and planned.config.trainer.accelerator == "cpu":
        return plan(compose(typed))
    return planned


def _stopped_by_search(trial: str | None) -> bool:
    if trial is None:
        return False
    from ablab.search.stopping import Stopping

    try:
        return Stopping(trial).has_stopped
    except UserError:  # the storage is out of reach; the search will read the outcome there
        return False


def work(words: Sequence[str], log: str, environment: Mapping[str, str]) -> None:
    """Compose and execute a run, write all output into the log, and exit with a code that tells the outcome."""
    os.environ.update(environment)
    try:
        into(log)
    except OSError:
        sys.exit(FAILED)
    try:
        hear_launcher()
        code = perform(words, log)
    except KeyboardInterrupt:  # it came while the process began
        code = INTERRUPTED
    sys.exit(code)


def hear_launcher() -> None:
    """Let the launcher alone stop this process, which raises KeyboardInterrupt then, once; so it does if that vanishes.

    The server of processes has them begin deaf to SIGINT.
    """
    from ablab.code.machine import StopOnce

    os.setpgid(0, 0)  # Ctrl-C in the terminal must reach only the launcher, which passes it on
    # The parent process may have set these signals to be ignored. All are a machine's: a launcher that will not wait
    # kills, and where it passes on a stop, the run may hear of the same one twice.
    stop = StopOnce()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    _end_with(os.getppid())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def into(log: str) -> None:
    """Redirect standard output and error, also of C libraries, into one file."""
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)


@contextmanager
def within(log: str) -> Iterator[None]:
    """Redirect all output into one file while the block runs: what follows it is not the run's."""
    streams, copies = (sys.stdout, sys.stderr), (os.dup(1), os.dup(2))
    try:
        into(log)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in enumerate(copies, start=1):
            os.dup2(copy, number)
            os.close(copy)
        sys.stdout, sys.stderr = streams


def _end_with(server: int) -> None:
    """Stop the run as by Ctrl-C, with a checkpoint, when its launcher or the server vanishes: nobody would see it.

    The launcher is watched by itself. The server lives as long as any run does, since each of them holds the write end
    of the pipe by which it notices that nobody needs it.
    """
    launcher = multiprocessing.parent_process()
    assert launcher is not None

    def watch() -> None:
        while os.getppid() == server and not wait([launcher.sentinel], timeout=1.0):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, name="launcher", daemon=True).start()
