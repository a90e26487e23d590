"""The heartbeat of a run: a small file with its current state, rewritten every few seconds for other processes."""

import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

BEAT = 2.0
"""Seconds between two writes."""

DEAD = 60.0
"""Seconds without a write after which a run on another machine counts as dead. On this machine, its lock decides."""


class Pulse(BaseModel):
    """The state of a run, as its heartbeat file holds it.

    `stage`: preparing, training, evaluating or pruning. `score`: BLEU of the last validation. `updated`: Unix time.
    """

    model_config = ConfigDict(frozen=True)

    host: str
    pid: int
    began: float
    stage: str = "preparing"
    step: int = 0
    total_steps: int | None = None
    score: float | None = None
    loss: float | None = None
    tokens_per_second: float | None = None
    seconds_per_step: float | None = None
    updated: float

    @property
    def is_here(self) -> bool:
        """True if this machine wrote it."""
        return self.host == platform.node()

    @property
    def is_fresh(self) -> bool:
        """True if it is less than DEAD seconds old."""
        return time.time() - self.updated < DEAD


class Heartbeat:
    """Writes the pulse of a run from a background thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pulse = Pulse(host=platform.node(), pid=os.getpid(), began=time.time(), updated=time.time())
        self._stopped = threading.Event()

    def tell(self, **news: Any) -> None:
        """Update fields of the pulse; the next beat writes them."""
        self._pulse = self._pulse.model_copy(update=news)

    def beat(self) -> None:
        """Write the pulse now. Errors are ignored: a full disk must not end a training run."""
        pulse = self._pulse.model_copy(update={"updated": time.time()})
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            temporary.write_text(pulse.model_dump_json(), encoding="utf-8")
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)

    def run(self) -> None:
        """Beat until stopped."""
        while not self._stopped.is_set():
            self.beat()
            self._stopped.wait(BEAT)

    def stop(self) -> None:
        self._stopped.set()


@contextmanager
def heartbeat(path: Path) -> Iterator[Heartbeat]:
    """Run a heartbeat while the block runs. The file is removed when the block ends, unless the process is killed."""
    beating = Heartbeat(path)
    thread = threading.Thread(target=beating.run, name="pulse", daemon=True)
    thread.start()
    try:
        yield beating
    finally:
        beating.stop()
        thread.join()
        path.unlink(missing_ok=True)


def read_pulse(path: Path) -> Pulse | None:
    """Return the last pulse, or None if there is no readable one."""
    try:
        return Pulse.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
