"""Locks of runs and searches. The operating system holds them, so that they end with their process, even a killed one.

Not every shared file system supports locks across machines: of a run, the heartbeat of another machine counts too.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ablab.errors import BusyError
from ablab.files import writing_in
from ablab.store.heartbeat import Pulse, read_pulse
from ablab.store.ownership import Owner, owned
from ablab.store.run_folder import RunFolder

ALLOWED = "wait for it, or stop it"

WAIT = 2.0
"""Seconds between two tries for the lock of a run that another process works on."""

GRACE = 0.1
"""Seconds to wait for a lock: `is_held` holds it for a moment, which must not refuse a run."""


@contextmanager
def hold(path: Path, busy: Callable[[], str]) -> Iterator[None]:
    """Hold the lock at `path` while the block runs; BusyError if another process holds it, without waiting for it.

    `busy`: returns what the line says then, such as `r1a2b is being worked on by another process`.
    """
    lock = FileLock(path)
    with writing_in(path.parent):
        try:
            lock.acquire(timeout=GRACE, poll_interval=GRACE / 4)
        except Timeout:  # a subclass of OSError
            raise BusyError(f"{busy()}; {ALLOWED}") from None
    try:
        yield
    finally:
        lock.release()


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock at `path`."""
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


@contextmanager
def locked_when_free(folder: RunFolder, say: Callable[[str], None]) -> Iterator[Owner]:
    """Hold the run's lock as `locked` does, but wait while another process works on the run; `say` is told once."""
    is_told = False
    with ExitStack() as stack:
        while True:
            try:
                owner = stack.enter_context(locked(folder))
                break
            except BusyError as error:
                if not is_told:
                    say(str(error).replace(ALLOWED, "waiting for it"))
                is_told = True
            time.sleep(WAIT)
        yield owner


@contextmanager
def locked(folder: RunFolder) -> Iterator[Owner]:
    """Hold the run's lock, as its owner; BusyError if another process, here or on another machine, works on it."""
    with hold(folder.lock, lambda: _busy(folder, read_pulse(folder.pulse))):
        pulse = read_pulse(folder.pulse)
        if pulse is not None and not pulse.is_here and pulse.is_fresh:
            raise BusyError(f"{_busy(folder, pulse)}; {ALLOWED}")
        with owned(folder) as owner:
            yield owner


def is_running(folder: RunFolder, pulse: Pulse | None) -> bool:
    """Return whether a process, here or on another machine, works on the run now; `pulse` is the run's last one."""
    if pulse is not None and not pulse.is_here:
        return pulse.is_fresh
    try:
        return is_held(folder.lock)
    except OSError:  # the store, or the disk, lets this process write nothing
        return pulse is not None and pulse.is_fresh


def _busy(folder: RunFolder, pulse: Pulse | None) -> str:
    holder = "another process"
    if pulse is not None and pulse.is_fresh:
        holder = f"process {pulse.pid}" + ("" if pulse.is_here else f" on {pulse.host}")
    return f"{folder.run_id} is being worked on by {holder}"
