"""Who writes into a run's folder: a token beside it, which the process that takes over the run replaces.

Locks do not reach across machines on every file system, and a machine that sleeps beats no heartbeat. When it wakes,
its run may belong to another; whatever it would commit then is refused.
"""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ablab.errors import TakenOverError
from ablab.files import guarded, half_written, write_text
from ablab.store.heartbeat import read_pulse
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
    for left in half_written(folder.owner.parent):
        if left.name.startswith(f".{folder.owner.name}."):  # by a kill of who owned it before
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
