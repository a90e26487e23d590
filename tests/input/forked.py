"""A command in a process of its own, forked from one that has imported everything: alone, and in milliseconds.

What a process prints, how it ends and how long it takes are then those of a shell's, also where Hydra keeps global
state, a pipe is never written to or the interpreter dies.
"""

import faulthandler
import io
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 5.0
"""Processor time that nothing may take that only reads its input. On a machine with other work, it waits longer."""

PATIENCE = 6
"""Multiple of SECONDS after which a process that still waits is killed."""

ESCAPED = 70
"""Exit code of a process that an exception ended; none of ablab's own."""


@dataclass(frozen=True)
class Ended:
    """How a process ended. `code`: negative for a signal; `hung`: it took SECONDS, or waited for much longer."""

    code: int
    out: str
    err: str
    seconds: float
    hung: bool


def forked(call: Callable[[], int], folder: Path, *, seconds: float = SECONDS) -> Ended:
    """Call in a child process whose working directory is `folder`, without input."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        child = _fork()
        if child == 0:
            _become(call, folder, out.fileno(), err.fileno())
        ended = _wait(child, began + PATIENCE * seconds)
        was_killed = ended is None
        if ended is None:
            os.kill(child, signal.SIGABRT)  # shows where it hangs
            ended = os.wait4(child, 0)[1:]
        status, used = ended
        texts = (_content(file) for file in (out, err))
        took = used.ru_utime + used.ru_stime
        return Ended(os.waitstatus_to_exitcode(status), *texts, took, was_killed or took > seconds)


def typed(
    words: Sequence[str],
    folder: Path,
    *,
    instead: Mapping[str, object] | None = None,
    seconds: float = SECONDS,
) -> Ended:
    """`ablab <words>`, with some of its functions replaced, by their dotted names."""

    def call() -> int:
        from ablab.commands.cli import main
        from tests.input.patched import patched

        with patched(instead or {}):
            return main(words)

    return forked(call, folder, seconds=seconds)


def _fork() -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # libraries have threads, which the child does not need
        return os.fork()


def _become(call: Callable[[], int], folder: Path, out: int, err: int) -> None:
    """Be the child to the end. Its streams are strict about their encoding, as those of a terminal are."""
    code = ESCAPED
    try:
        for stream, number in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
            os.dup2(stream, number)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), "utf-8", "strict")
        sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), "utf-8", "backslashreplace")
        os.chdir(folder)
        faulthandler.enable(file=err)
        code = call()
        sys.stdout.flush()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else ESCAPED
    except BaseException:
        traceback.print_exc()
        code = ESCAPED
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                code = ESCAPED
        os._exit(code)


def _wait(child: int, until: float) -> tuple[int, resource.struct_rusage] | None:
    """Return the child's status and what it used; None if it has not ended by then."""
    pause = 0.001
    while True:
        found, status, used = os.wait4(child, os.WNOHANG)
        if found:
            return status, used
        if time.monotonic() > until:
            return None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def _content(file: io.BufferedRandom) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "backslashreplace")
