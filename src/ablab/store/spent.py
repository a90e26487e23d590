"""Where a run's time went: seconds by part, summed over the processes that worked on the run."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ablab.errors import UserError
from ablab.files import read_json, write_json

PARTS = ("prepare", "train", "validate", "save", "evaluate", "curve", "wait")
"""All that a run does. `save`: checkpoints, the choice of weights, and what is shown between steps. `wait`: for another
process that works on the run, and for a tracker to end."""

OF_STAGES = {"training": "train", "evaluating": "evaluate", "pruning": "curve"}
"""The part that begins with each stage of a heartbeat; of all before the first, it is `prepare`."""


class Spent:
    """An account in which every second from `began` on belongs to one part: to that which goes on, unless told.

    `path`: its file, which has the seconds of earlier processes; None: no file is kept. `began`: by
    `time.perf_counter`, when the line was typed; None: now. `waited`: seconds of those in which another process worked
    on the run.
    """

    def __init__(self, path: Path | None = None, began: float | None = None, waited: float = 0.0) -> None:
        self._path, self._earlier = path, dict[str, float]()
        self._part, self._is_read = "prepare", False
        self._since = time.perf_counter() if began is None else began + waited
        self.seconds = {**dict.fromkeys(PARTS, 0.0), "wait": waited}

    def book(self, part: str | None = None) -> float:
        """Give the time since the last call to `part`, by default to the part that goes on; return these seconds."""
        before, self._since = self._since, time.perf_counter()
        self.seconds[part or self._part] += self._since - before
        return self._since - before

    def move(self, seconds: float, origin: str, part: str) -> None:
        """Give to `part` so many seconds of those that `origin` was given."""
        self.seconds[origin] -= seconds
        self.seconds[part] += seconds

    def begin(self, part: str) -> None:
        """Write the account so far, and begin a part."""
        self.keep()
        self._part = part

    def keep(self) -> None:
        """Write the account, where the run has a folder. A disk that is full must not end a run."""
        self.book()
        if self._path is None or not self._path.parent.is_dir():
            return
        if not self._is_read:  # not before: a run that is to be replaced takes its account along
            self._earlier, self._is_read = dict(read_spent(self._path) or {}), True
        with suppress(OSError):
            write_json(self._path, {each: round(self.seconds[each] + self._earlier.get(each, 0), 3) for each in PARTS})


def read_spent(path: Path) -> Mapping[str, float] | None:
    """Return the seconds of each part; None for a run of before there were accounts, or where it cannot be read."""
    try:
        content = read_json(path)
        return {part: float(content[part]) for part in PARTS}
    except (OSError, UserError, LookupError, TypeError, ValueError):
        return None
