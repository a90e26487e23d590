"""Who works on a run, or searches: locks, and the token of a run's owner.

The operating system holds locks, so that they end with their process, even a killed one. Not every shared file system
supports them across machines: of a run, the heartbeat of another machine counts too. A machine that sleeps beats none.
When it wakes, its run may belong to another process, which has replaced the token beside the run's folder; whatever it
would commit then is refused.
"""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import Timeout

from ablab.errors import BusyError, MachineError, TakenOverError
from ablab.files import write_text
from ablab.files.disk import guarded, halves_of, lock_at, writing_in
from ablab.store.heartbeat import Pulse, read_pulse
from ablab.store.run_folder import RunFolder

PAUSES = (0.1, 1.0)
"""Seconds before a token that could not be read is read again."""


@dataclass(frozen=True)
class Owner:
    """The process that works on a run. `token`: what it has written beside the run's folder."""

    folder: RunFolder
    token: str

    @property
    def is_still(self) -> bool:
        """True unless another process has taken the run over. OSError while the disk does not tell."""
        return _read(self.folder.owner) == self.token

    def check(self) -> None:
        """Raise TakenOverError unless the run still belongs to this process."""
        if not self.is_still:
            pulse = read_pulse(self.folder.pulse)
            other = "another process" if pulse is None else f"process {pulse.pid} on {pulse.host}"
            raise TakenOverError(
                f"{self.folder.run_id} was taken over by {other}, since nothing was heard of this one; stopped, and "
                "nothing more was written"
            )


@contextmanager
def owned(folder: RunFolder) -> Iterator[Owner]:
    """Own the run while the block runs, whose lock must be held; files below its folder are committed by its owner."""
    owner = Owner(folder, secrets.token_hex(8))
    for left in halves_of(folder.owner):  # by a kill of who owned it before
        left.unlink(missing_ok=True)
    write_text(folder.owner, owner.token)
    try:
        with guarded(folder.path, owner.check):
            yield owner
    finally:
        with suppress(OSError):
            if owner.is_still:
                folder.owner.unlink(missing_ok=True)


def _read(path: Path) -> str | None:
    """Return a token, or None where there is none; a network's disk may need to be asked again."""
    for pause in PAUSES:
        try:
            return _token(path)
        except OSError:
            time.sleep(pause)
    return _token(path)


def _token(path: Path) -> str | None:
    with suppress(FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return path.read_text(encoding="ascii")
    return None


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
    lock = lock_at(path)
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
    lock = lock_at(path)
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
    with held(folder), owned(folder) as owner:
        yield owner


@contextmanager
def held(folder: RunFolder) -> Iterator[None]:
    """Hold the run's lock for a line in a file of a run that nobody works on, which needs no owner."""
    with hold(folder.lock, lambda: _busy(folder, read_pulse(folder.pulse))):
        pulse = read_pulse(folder.pulse)
        if pulse is not None and not (pulse.is_here or pulse.is_former) and pulse.is_fresh:
            raise BusyError(f"{_busy(folder, pulse)}; {ALLOWED}")
        yield


def is_former(folder: RunFolder) -> bool:
    """Return whether an earlier attempt of this process's job had the run last: it may be writing its checkpoint."""
    pulse = read_pulse(folder.pulse)
    return pulse is not None and pulse.is_former


def is_running(folder: RunFolder, pulse: Pulse | None) -> bool:
    """Return whether a process, here or on another machine, works on the run now; `pulse` is the run's last one."""
    if pulse is not None and not pulse.is_here:
        return pulse.is_fresh
    try:
        return is_held(folder.lock)
    except (OSError, MachineError):  # the store, or the disk, lets this process write nothing, or has no locks
        return pulse is not None and pulse.is_fresh


def _busy(folder: RunFolder, pulse: Pulse | None) -> str:
    holder = "another process"
    if pulse is not None and pulse.is_fresh:
        holder = f"process {pulse.pid}" + ("" if pulse.is_here else f" on {pulse.host}")
    return f"{folder.run_id} is being worked on by {holder}"
