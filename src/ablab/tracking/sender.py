"""A process that sends the events of one run or study to Weights & Biases: `python -m ablab.tracking.sender FOLDER`.

W&B may fail, hang or be killed here without harm to a run. Each row bears its number among the rows of the events as
W&B's own step; W&B tells at the beginning how many rows it has, and at the end whether it has all.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ablab.files import read_json, write_json
from ablab.tracking.events import FOLDER, ROWS, STEP, Event, placed_events
from ablab.tracking.server import out_of_reach
from ablab.tracking.tracker import RunCard

OUTCOME = "sent.json"
"""File with how far the events were sent, in bytes, and what hindered the last attempt."""

POLL = 0.5
"""Seconds between two looks for new events."""

INIT_SECONDS = 20.0
"""Seconds in which the server must accept the run."""

NICENESS = 10
"""By how much the process yields to the run beside which it works: that trains on all cores."""

CHECKS = 5
"""Times that W&B is asked at the end for its rows, a second apart: it takes them in with a delay."""


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
    card = [RunCard.model_validate(event["card"]) for event, _ in placed_events(folder) if event["event"] == "opened"]
    if (problem := out_of_reach()) is not None:
        return 0, problem
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # reports on W&B itself cost seconds at its end
    import wandb

    with tempfile.TemporaryDirectory(prefix="ablab-wandb-", ignore_cleanup_errors=True) as scratch:
        try:
            feed = _Feed(wandb, card[-1], scratch, parent)
            place, failed = 0, True
            for event, place in _following(folder, start, parent):  # noqa: B007
                feed.take(event, folder)
                failed = event.get("failed", True)
            feed.run.finish(exit_code=int(failed))
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


class _Feed:
    """A run of W&B, and the number of rows it was given."""

    def __init__(self, wandb: Any, card: RunCard, scratch: str, parent: int | None) -> None:
        self._wandb, self._rows = wandb, 0
        self.run = wandb.init(
            id=card.run_id,
            name=card.name,
            project=card.project,
            entity=card.entity,
            mode="online",
            dir=scratch,
            config=dict(card.config),
            tags=list(card.tags),
            group=card.group,
            job_type=card.job_type,
            resume="allow",
            settings=wandb.Settings(
                init_timeout=INIT_SECONDS,
                console="off",
                silent=True,
                save_code=False,
                disable_git=True,
                x_disable_stats=parent is None,
                x_stats_pid=parent or os.getpid(),
            ),
        )
        self._there = self.run.starting_step
        self._path = f"{self.run.entity}/{self.run.project}/{card.run_id}"
        self.run.define_metric(STEP, hidden=True)
        self.run.define_metric("*", step_metric=STEP)

    def take(self, event: Event, folder: Path) -> None:
        """Pass an event on, unless it is a row that the server has."""
        kind = event["event"]
        if kind == "summary":
            self.run.summary.update(event["values"])
        elif kind in ROWS:
            if self._rows >= self._there:
                self._define(event)
                place = {event["axis"]: event["x"]}
                self.run.log({**place, **self._values(event, folder / FOLDER)}, step=self._rows, commit=True)
            self._rows += 1

    def missing(self) -> str | None:
        """Return what the server lacks once the run is finished, or None."""
        if not self._rows:
            return None
        for _ in range(CHECKS):
            there = 1 + int(self._wandb.Api().run(self._path).lastHistoryStep)
            if there >= self._rows:
                return None
            time.sleep(1.0)
        return f"the server has {there} of {self._rows} rows"

    def _define(self, event: Event) -> None:
        """Give each key that has an axis of its own that axis: a pattern would not take precedence over `*`."""
        if event["axis"] != STEP:
            self.run.define_metric(event["axis"], hidden=True)
            for key in event["values"]:
                self.run.define_metric(key, step_metric=event["axis"])

    def _values(self, event: Event, folder: Path) -> Mapping[str, Any]:
        kind = event["event"]
        if kind == "table":
            return {event["key"]: self._wandb.Table(columns=event["columns"], data=event["rows"])}
        if kind == "picture":
            path = folder / event["file"]
            return {event["key"]: self._wandb.Image(str(path), caption=event["caption"])} if path.exists() else {}
        if kind == "chart":
            from plotly.graph_objects import Figure

            return {event["key"]: self._wandb.Plotly(Figure(event["figure"]))}
        values: dict[str, Any] = event["values"]
        return values


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
