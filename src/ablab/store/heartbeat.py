"""A sign of life: what a run is doing, for whoever watches from another process."""

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
"""Seconds between two signs."""

DEAD = 60.0
"""Seconds of silence after which a run on another machine counts as dead. Here, its lock tells."""


class Pulse(BaseModel):
    """`stage`: preparing, training, evaluating, pruning. `score`: the last validation's BLEU. `updated`: Unix time."""

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
        """Whether it comes from this machine."""
        return self.host == platform.node()

    @property
    def is_fresh(self) -> bool:
        """Whether it came lately."""
        return time.time() - self.updated < DEAD


class Heartbeat:
    """Beats in the background as long as the run goes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pulse = Pulse(host=platform.node(), pid=os.getpid(), began=time.time(), updated=time.time())
        self._stopped = threading.Event()

    def tell(self, **news: Any) -> None:
        """Remember, for the next beat."""
        self._pulse = self._pulse.model_copy(update=news)

    def beat(self) -> None:
        """Write the pulse now. A disk that is full must not end a training."""
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
        """No more."""
        self._stopped.set()


@contextmanager
def heartbeat(path: Path) -> Iterator[Heartbeat]:
    """A heart that beats while the block runs; its file goes when the block ends, however it does but by a kill."""
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
    """The last sign of life, if there is one."""
    try:
        return Pulse.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
