"""How often one sweep begins a run: retries of failures, and when interruptions from outside are too many."""

from ablab.errors import UserError
from ablab.store.metrics import read_metrics
from ablab.store.run_folder import RunFolder
from ablab.study.ledger import LedgerEntry

RETRIES = {"memory": 1, "killed": 1, "timeout": 0, "refused": 0, "error": 0}
"""Retries of a failed run by kind of failure, one at a time, at the end of the sweep. An error would only recur."""

MOST_IN_VAIN = 5
"""Maximum number of times that one sweep begins a run that is interrupted from outside and comes no further."""


class Interruptions:
    """Counts for each run, by its id, how often it was interrupted since it last came further."""

    def __init__(self) -> None:
        self._steps: dict[str, int] = {}
        self._in_vain: dict[str, int] = {}

    def begin(self, entry: LedgerEntry) -> None:
        """Note how far a run is that is begun."""
        folder = entry.cell.planned.folder
        self._steps.setdefault(folder.run_id, last_step(folder))

    def count(self, entry: LedgerEntry, what: str | None) -> str | None:
        """Count the interruption of a run, by `what`; return why it is not begun again, or None."""
        run, step = entry.cell.planned.run_id, last_step(entry.cell.planned.folder)
        if step > self._steps.get(run, -1):
            self._steps[run], self._in_vain[run] = step, 0
            return None
        self._in_vain[run] = self._in_vain.get(run, 0) + 1
        if self._in_vain[run] < MOST_IN_VAIN:
            return None
        return f"interrupted {MOST_IN_VAIN} times in a row without a step" + (f", last: {what}" if what else "")


def last_step(folder: RunFolder) -> int:
    """Return the last step that a run has measured; -1 before any."""
    try:
        return max((int(row["step"]) for row in read_metrics(folder.metrics)), default=-1)
    except (OSError, UserError):
        return -1
