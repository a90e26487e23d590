"""A process that sends the events of one run or study to Weights & Biases: `python -m ablab.tracking.sender FOLDER`.

W&B may fail, hang or be killed here without harm to a run. Each row bears its number among the rows of the events as
W&B's own step; W&B tells at the beginning how many rows it has, and at the end whether it has all.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from ablab.files import read_json, write_json
from ablab.tracking.events import FOLDER, Event, placed_events
from ablab.tracking.feed import About, Feed
from ablab.tracking.server import out_of_reach

OUTCOME = "sent.json"
"""File with how far the events were sent, in bytes, and what hindered the last attempt."""

POLL = 0.5
"""Seconds between two looks for new events."""

NICENESS = 10
"""By how much the process yields to the run beside which it works: that trains on all cores."""


def main(folder: Path, parent: int | None = None, start: int = 0) -> int:
    """Send the events; write the outcome and return 0 only if the server has them all.

    `parent`: process of the run that goes on, whose events begin at byte `start`; None: as many as there are now.
    """
    if parent is not None:
        os.nice(NICENESS)
    lock = FileLock(folder / FOLDER / ".sending.lock")
    try:
        # The process of an earlier attempt may have some seconds to go.
        with lock.acquire(timeout=60 if parent is None else -1, poll_interval=POLL):
            place, problem = _send(folder, parent, start)
    except Timeout:
        return 0  # another process is sending them
    before = sent(folder)
    write_json(folder / FOLDER / OUTCOME, {"bytes": before if problem else place, "problem": problem})
    return int(problem is not None)


def sent(folder: Path) -> int:
    """Return how many bytes of the events the server is known to have."""
    path = folder / FOLDER / OUTCOME
    return int(read_json(path)["bytes"]) if path.exists() else 0


def _send(folder: Path, parent: int | None, start: int) -> tuple[int, str | None]:
    """Send the events, while the run goes on or as far as there are; return their end, and what went wrong."""
    told = About.of(folder)
    if (problem := out_of_reach()) is not None:
        return 0, problem
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # reports on W&B itself cost seconds at its end
    # A process that uses W&B names its own service to those it starts; there, a run that was refused stays "in use".
    os.environ.pop("WANDB_SERVICE", None)
    import wandb

    with tempfile.TemporaryDirectory(prefix="ablab-wandb-", ignore_cleanup_errors=True) as scratch:
        os.environ.update(dict.fromkeys(("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"), scratch))
        try:
            feed = Feed(wandb, told, scratch, parent)
            place, failed = 0, True
            for event, place in _following(folder, start, parent):  # noqa: B007
                feed.take(event, folder)
                if event["event"] != "study":  # which another study adds once the run has been closed
                    failed = event.get("failed", True)
            feed.finish(failed=failed)
            return place, feed.missing()
        except Exception as error:  # whatever W&B raises is its own trouble, and the events are on disk
            return 0, " ".join(str(error).split())[:200] or type(error).__name__


def _following(folder: Path, start: int, parent: int | None) -> Iterator[tuple[Event, int]]:
    """Yield events as they come: to the end of the file, or until the run that `parent` makes closes or is gone."""
    place = 0
    while True:
        last = parent is None or os.getppid() != parent
        for event, end in placed_events(folder, start=place):
            yield event, (place := end)
            last = last or (event["event"] == "closed" and end > start)
        if last:
            return
        time.sleep(POLL)


if __name__ == "__main__":
    program, where, *numbers = sys.argv
    sys.argv = [program]  # W&B sends the words of a command, and the folder may lie below someone's home
    sys.exit(main(Path(where), *map(int, numbers)))
