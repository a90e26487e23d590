"""Locks of runs and searches. The operating system holds them, so that they end with their process, even a killed one.

Not every shared file system supports locks across machines: of a run, the heartbeat of another machine counts too.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ablab.errors import UserError
from ablab.files import writing_in
from ablab.store.heartbeat import Pulse, read_pulse
from ablab.store.run_folder import RunFolder

GRACE = 0.1
"""Seconds to wait for a lock: `is_held` holds it for a moment, which must not refuse a run."""


class BusyError(UserError):
    """Another process holds the lock."""


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
            raise BusyError(f"{busy()}; wait for it, or stop it") from None
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
def locked(folder: RunFolder) -> Iterator[None]:
    """Hold the run's lock; BusyError if another process, here or on another machine, works on the run."""
    with hold(folder.lock, lambda: _busy(folder, read_pulse(folder.pulse))):
        pulse = read_pulse(folder.pulse)
        if pulse is not None and not pulse.is_here and pulse.is_fresh:
            raise BusyError(f"{_busy(folder, pulse)}; wait for it, or stop it")
        yield


def is_running(folder: RunFolder, pulse: Pulse | None) -> bool:
    """Return whether a process, here or on another machine, works on the run now; `pulse` is the run's last one."""
    if pulse is not None and not pulse.is_here:
        return pulse.is_fresh
    return is_held(folder.lock)


def _busy(folder: RunFolder, pulse: Pulse | None) -> str:
    holder = "another process"
    if pulse is not None and pulse.is_fresh:
        holder = f"process {pulse.pid}" + ("" if pulse.is_here else f" on {pulse.host}")
    return f"{folder.run_id} is being worked on by {holder}"
