"""A command as a process: it has a group of its own, is asked to end before it is ended, and leaves nothing behind."""

import codecs
import math
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from ablab.code.machine import graceful_stop, signal_name
from ablab.tasks.command.result import CommandError

POLL = 0.1
"""Seconds between two looks at a command that runs."""

MOST = 64 * 2**20
"""Bytes of each stream that are passed on; what comes after them is read and left out."""

TAIL = 1 << 16
"""Bytes at the end of each stream among which its last line is looked for: launchers add a trace of their own."""

ERROR = re.compile(r"(\[\w+\]:\s*)?([\w.]+(Error|Exception)\b|Error\b)")
"""How a line on an error begins in Python, in R, and in a worker of torchrun, whose own report follows."""

HALTED = "Execution halted"
"""The last words of R after any error."""

AFTER = 1.0
"""Seconds for which a stream is read after its command's end, should a process outside the group still hold it."""

_LEADER = """
import ctypes, os, resource, signal, sys
tell_of_parent = ctypes.CDLL(None).prctl

def end(*_):
    below, parents = {os.getpid()}, {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat:
                parents[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    while more := {one for one, parent in parents.items() if parent in below} - below:
        below |= more
    for one in below - {os.getpid()}:
        try:
            os.kill(one, signal.SIGKILL)
        except OSError:
            pass
    os.killpg(0, signal.SIGKILL)

signal.signal(signal.SIGUSR1, end)
tell_of_parent(1, signal.SIGUSR1)
if os.getppid() != int(sys.argv[1]):
    end()
others = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
for number in others:
    signal.signal(number, signal.SIG_IGN)
command = os.fork()
if not command:
    tell_of_parent(1, signal.SIGKILL)
    for number in [*others, signal.SIGUSR1, signal.SIGPIPE, signal.SIGXFSZ]:
        signal.signal(number, signal.SIG_DFL)
    os.execvp(sys.argv[2], sys.argv[2:])
code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
if code < 0:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""

IS_LINUX = sys.platform == "linux"


def _led(words: Sequence[str]) -> list[str]:
    """Return a command with a leader of its group before it, which ends all of it should we be killed.

    A second attempt must be alone in its folder, also where the command is a shell or a launcher and what works there
    is a child of it, in a session of its own as the workers of torchrun are: the system tells the leader of its
    parent's end (PR_SET_PDEATHSIG). It ends as the command does.
    """
    return [*([sys.executable, "-I", "-S", "-c", _LEADER, str(os.getpid())] if IS_LINUX else []), *words]


def execute(
    words: Sequence[str],
    environment: Mapping[str, str],
    watch: Callable[[], None],
    *,
    timeout: float | None,
    grace: float,
    is_heard: bool = True,
) -> None:
    """Run a command to its end, and call `watch` now and then. What it says goes to our own streams if it `is_heard`.

    timeout, grace: seconds until it is asked to end, and from then until it is ended. A signal that asks us to stop is
    passed on to it, and KeyboardInterrupt raised once it is gone. Raises CommandError where it ends with another code
    than 0, or does not end in time.
    """
    asked = threading.Event()
    until = None if timeout is None else time.monotonic() + timeout
    with graceful_stop(asked.set):  # from before it begins: nobody else would ask it to end
        process = _started(words, environment)
        said = _Stream(process.stdout, sys.stdout if is_heard else None)
        complaint = _Stream(process.stderr, sys.stderr if is_heard else None)
        try:
            while process.poll() is None and not asked.is_set() and (until is None or time.monotonic() < until):
                watch()
                _wait(process)
            has_ended = process.poll() is not None
            _end(process, grace)
        except BaseException as error:  # a search that stops its trial, too; a second signal is for ending at once
            _end(process, 0.0 if isinstance(error, KeyboardInterrupt) else grace)
            raise
    said.finish()
    complaint.finish()
    if asked.is_set():
        raise KeyboardInterrupt
    if not has_ended:
        raise CommandError(f"the command had not ended after {timeout:g} seconds (timeout)")
    if process.returncode != 0:
        raise CommandError(_failure(process.returncode, complaint.last))


def _started(words: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            _led(words),
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandError(f"{words[0]}: cannot be run ({error.strerror})") from None


def _wait(process: "subprocess.Popen[bytes]") -> None:
    """Wait until a command ends, or for the next look at it: no wait makes its time longer, since that is a score."""
    with suppress(OSError, AttributeError):  # where there is no pidfd_open
        handle = os.pidfd_open(process.pid)
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            poll.poll(1000 * POLL)
            return
        finally:
            os.close(handle)
    time.sleep(POLL)


def _failure(code: int, last: str) -> str:
    """Return a line on how a command failed. One that a signal has killed may be tried again."""
    how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
    return f"the command {how}{': ' if last else ''}{last}"


def _end(process: "subprocess.Popen[bytes]", grace: float) -> None:
    """Ask a command to end, and end what is left of it after so many seconds.

    A shell ends at once, while what it has started still writes its checkpoint.
    """
    below = _below(process.pid) if process.poll() is None else {}
    if process.poll() is None and grace > 0:
        until = time.monotonic() + grace
        _signal(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace)
        while time.monotonic() < until and _signal(process.pid, 0):
            time.sleep(POLL)
    _signal(process.pid, signal.SIGKILL)  # its children too, also where it has ended by itself
    for one, began in below.items():
        if _stat(one)[1:] == (began,):
            with suppress(OSError):
                os.kill(one, signal.SIGKILL)
    process.wait()


def _signal(group: int, number: int) -> bool:
    """Send a signal to a group; return whether any process of it is left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # of macOS, where all that is left has ended and waits for its parent
        return False
    return True


def _below(process: int) -> dict[int, str]:
    """Return when each process below another one began: a launcher gives its own a session. Empty without /proc."""
    there = {int(path.name): stat for path in Path("/proc").glob("[0-9]*") if (stat := _stat(int(path.name)))}
    found, parents = dict[int, str](), {str(process)}
    while more := {one: stat[1] for one, stat in there.items() if stat[0] in parents and one not in found}:
        found |= more
        parents = set(map(str, more))
    return found


def _stat(process: int) -> tuple[str, ...]:
    """Return the parent of a process and when it began; nothing where it is gone."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ()
    return told[1], told[19]


class _Stream(threading.Thread):
    """Passes on what a command says, if anyone hears it. `last`: its last line, or that of an error."""

    def __init__(self, source: IO[bytes] | None, target: IO[str] | None) -> None:
        super().__init__(daemon=True)
        assert source is not None
        self._source, self._target, self._tail, self._count = source, target, b"", 0
        self._until = math.inf
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.start()

    def run(self) -> None:
        with self._source:
            while chunk := self._next():
                self._tail = (self._tail + chunk)[-TAIL:]
                self._pass_on(chunk)

    def finish(self) -> None:
        """Read what the command still said. A daemon that it left may never close its end, and is not waited for."""
        self._until = time.monotonic() + AFTER
        self.join()

    def _next(self) -> bytes:
        """Return what comes next; nothing once the stream is closed, or its command gone and the stream silent."""
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        while not poll.poll(1000 * POLL):
            if self._until < math.inf:
                return b""
        return os.read(self._source.fileno(), 1 << 16) if time.monotonic() < self._until else b""

    def _pass_on(self, chunk: bytes) -> None:
        before, self._count = self._count, self._count + len(chunk)
        if self._target is None or before >= MOST:
            return
        try:
            self._target.write(self._decoder.decode(chunk[: MOST - before]))
            if self._count >= MOST:
                self._target.write(f"\n[what it says beyond {MOST // 2**20} MiB is left out]\n")
            self._target.flush()
        except (OSError, ValueError):  # a pager that was closed, a full disk: nothing that the command has done
            self._target = None

    @property
    def last(self) -> str:
        lines = [line.strip() for line in self._tail.decode(errors="replace").splitlines()]
        told = [line for line in lines if re.search(r"\w", line) and line != HALTED]
        errors = [line for line in told if ERROR.match(line)]
        return [*lines, *told, *errors][-1] if lines else ""
