"""A process that sends the events of one run or study to Weights & Biases: `python -m ablab.tracking.sender FOLDER`.

Or it has W&B write them to an offline session of its own, in `wandb/` beside the events, which `wandb sync` sends. All
rows are in the session, those of earlier processes of the run too, so that it replaces the session before.

W&B may fail, hang or be killed here without harm to a run. Each row bears its number among the rows of the events as
W&B's own step; W&B tells at the beginning how many rows it has, and at the end whether it has all.
"""

import math
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import Timeout

from ablab.errors import UserError
from ablab.files import read_json, sha256, write_json
from ablab.files.disk import lock_at
from ablab.tasks.registry import known_tasks
from ablab.tracking.card import card_in
from ablab.tracking.events import EVENTS, FOLDER, ROWS, STEP, STUDIES, Event, events_of, placed_events
from ablab.tracking.server import out_of_reach
from ablab.tracking.tracker import RunCard

INIT_SECONDS = 20.0
"""Seconds in which the server must accept the run."""

CHECKS = 5
"""Times that W&B is asked at the end for its rows, a second apart: it takes them in with a delay."""


def summaries() -> Mapping[str, str]:
    """Return what W&B's summary keeps of a curve, by the last part of its key; the last value of any other."""
    found = {"perplexity": "min"}
    for task in known_tasks():
        for name, score in task.scores.items():
            found |= dict.fromkeys((name, score.key), "max" if score.higher_is_better else "min")
    return found


OUTCOME = "sent.json"
"""File with how far the events were sent, in bytes, and what hindered the last attempt. `written`: how far they are in
the offline session, if there is one.
"""

SESSIONS = "wandb"
"""Folder of W&B's offline session, beside the events."""

DATASET = "dataset.json"
"""File with what identifies the data set, beside the events, from where `wandb sync` takes it."""

Mode = Literal["online", "offline"]

POLL = 0.5
"""Seconds between two looks for new events."""

NICENESS = 10
"""By how much the process yields to the run beside which it works: that trains on all cores."""


@dataclass(frozen=True)
class About:
    """What the events say of the run as a whole.

    `card`: the last. `tags`: of all cards, and the studies that have the run; `arms`: its arm in each of those.
    """

    card: RunCard
    tags: Sequence[str]
    arms: Mapping[str, str | None]

    @classmethod
    def of(cls, folder: Path) -> "About":
        """Read the events; LookupError where they name no run."""
        card: RunCard | None = None
        tags: list[str] = []
        arms: dict[str, str | None] = {}
        for event in events_of(folder):
            if (found := card_in(event)) is not None:
                card = found
                tags += card.tags
                arms |= card.config.get(STUDIES, {})
            elif event["event"] == "study":
                tags += event["tags"]
                arms |= event[STUDIES]
        if card is None:
            raise LookupError(f"{folder} names no run")
        return cls(card, list(dict.fromkeys(tags)), arms)


class Feed:
    """A run of W&B, and the number of rows it was given."""

    def __init__(self, wandb: Any, about: About, place: Path, parent: int | None, mode: Mode) -> None:
        self._wandb, self._rows, self._card, self._mode = wandb, 0, about.card, mode
        card = self._card
        self.run = wandb.init(
            id=card.id_there,
            name=card.name,
            notes=card.notes,
            project=card.project,
            entity=card.entity,
            mode=mode,
            dir=str(place),
            config={**card.config, **({STUDIES: dict(about.arms)} if about.arms else {})},
            group=card.group,
            job_type=card.job_type,
            resume="allow" if mode == "online" else None,  # a session replaces what `wandb sync` has sent of the run
            settings=wandb.Settings(
                init_timeout=INIT_SECONDS,
                console="off",
                silent=True,
                save_code=False,
                disable_git=True,
                program="ablab",  # not its path, nor that of Python, which may lie below someone's home
                x_executable="python",
                x_disable_stats=parent is None,
                x_stats_pid=parent or os.getpid(),
            ),
        )
        self._there = self.run.starting_step
        self._path = f"{self.run.entity}/{self.run.project}/{card.id_there}"
        self._defined: set[str] = set()
        self._summaries = summaries()
        self._extremes: dict[str, dict[str, float]] = {}
        self._stored: list[Any] = []
        self._datasets: list[Any] = []
        self._began: float | None = None
        self._arms = dict(about.arms)
        self.run.tags = tuple(dict.fromkeys((*(self.run.tags or ()), *about.tags)))  # those given in W&B stay
        self.run.define_metric(STEP, hidden=True)
        self.run.define_metric("*", step_metric=STEP)

    def take(self, event: Event, folder: Path) -> None:
        """Pass an event on, unless it is a row that the server has."""
        kind = event["event"]
        self._began = self._began or event.get("at")
        if kind == "summary":
            self.run.summary.update(event["values"])
        elif kind == "model":
            self._store(event, folder)
        elif kind == "dataset":
            self._name(event, folder)
        elif kind == "study" and not event[STUDIES].items() <= self._arms.items():
            self._join(event)
        elif kind in ROWS:
            self._define(event)
            if self._rows >= self._there:
                place = {event["axis"]: event["x"]}
                # W&B's own key for the second: when it was told, not when it is sent. Older events do not say.
                at = {"_timestamp": event["at"]} if "at" in event else {}
                self.run.log({**place, **at, **self._values(event, folder / FOLDER)}, step=self._rows, commit=True)
            self._rows += 1

    def finish(self, *, failed: bool) -> None:
        """Close the run. W&B knows no extremes of rows that it had before this process: it is told them."""
        self.run.summary.update(self._extremes)
        if self._began is not None:  # W&B's own runtime is that of the sending
            self.run.summary["started"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._began))
        for dataset in self._datasets:  # W&B waits for each that is used, and offline only takes what is logged
            (self.run.use_artifact if self._mode == "online" else self.run.log_artifact)(dataset)
        for stored in self._stored if self._mode == "online" else ():
            stored.wait()  # raises what hindered it
        self.run.finish(exit_code=int(failed))

    def missing(self) -> str | None:
        """Return what the server lacks once the run is finished, or None."""
        if not self._rows or self._mode == "offline":
            return None
        for _ in range(CHECKS):
            there = 1 + int(self._wandb.Api().run(self._path).lastHistoryStep)
            if there >= self._rows:
                return None
            time.sleep(1.0)
        return f"the server has {there} of {self._rows} rows"

    def _join(self, event: Event) -> None:
        """Add a study that came to have the run after this process had begun."""
        self._arms |= event[STUDIES]
        self.run.config.update({STUDIES: dict(self._arms)}, allow_val_change=True)
        self.run.tags = tuple(dict.fromkeys((*self.run.tags, *event["tags"])))

    def _store(self, event: Event, folder: Path) -> None:
        """Store a model as an artifact; W&B takes equal content once. One that is gone or was changed is left out."""
        paths = [folder / place for place in event["files"]]
        if not all(path.is_file() for path in paths) or sha256(paths[0]) != event["digest"]:
            print(f"{paths[0]}: not the file that was written; it is not stored in W&B", flush=True)  # noqa: T201
            return
        about = {"run_id": self._card.run_id, "sha256": event["digest"]}
        artifact = self._wandb.Artifact(f"{self._card.id_there}-{event['key']}", type="model", metadata=about)
        for path in paths:
            artifact.add_file(str(path), name=path.name, policy="immutable", skip_cache=True)
        self._stored.append(self.run.log_artifact(artifact))

    def _name(self, event: Event, folder: Path) -> None:
        """Name the data set by a file of what identifies it, since W&B tells artifacts apart by their files."""
        write_json(folder / FOLDER / DATASET, event["about"])
        artifact = self._wandb.Artifact(re.sub(r"[^\w.-]", "_", event["key"]), type="dataset", metadata=event["about"])
        artifact.add_file(str(folder / FOLDER / DATASET), policy="immutable", skip_cache=True)
        self._datasets.append(artifact)

    def _define(self, event: Event) -> None:
        """Give each key its axis, and what the summary keeps of it; a pattern would not take precedence over `*`."""
        axis = event["axis"]
        if axis != STEP and axis not in self._defined:
            self.run.define_metric(axis, hidden=True)
        for key in {axis, *event.get("values", ())} - self._defined - {STEP}:
            summary = self._summaries.get(key.rpartition("/")[2])
            if key != axis and (axis != STEP or summary is not None):
                self.run.define_metric(key, step_metric=axis, summary=summary)
            self._defined.add(key)
        for key, value in event.get("values", {}).items():
            summary = self._summaries.get(key.rpartition("/")[2])
            if summary is not None and value is not None and math.isfinite(value):
                known = self._extremes.get(key, {}).get(summary, value)
                self._extremes[key] = {summary: max(known, value) if summary == "max" else min(known, value)}

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


def main(folder: Path, mode: Mode = "online", parent: int | None = None, start: int = 0) -> int:
    """Send the events; write the outcome and return 0 only if the server, or the offline session, has them all.

    `parent`: process of the run that goes on, whose events begin at byte `start`; None: as many as there are now.
    """
    if parent is not None:
        os.nice(NICENESS)
    lock = lock_at(folder / FOLDER / ".sending.lock")
    try:
        # The process of an earlier attempt may have some seconds to go.
        with lock.acquire(timeout=60 if parent is None else -1, poll_interval=POLL):
            before, written = sent(folder), _outcome(folder).get("written", 0)
            if mode == "offline":  # the session before is not to vouch for this one, should it be killed
                write_json(folder / FOLDER / OUTCOME, {"bytes": before, "written": 0, "problem": None})
            place, problem = _send(folder, mode, parent, start)
    except Timeout:
        return 0  # another process is sending them
    if mode == "offline":
        known = {"bytes": before, "written": 0 if problem else place}
    else:
        known = {"bytes": before if problem else place, "written": written}
    write_json(folder / FOLDER / OUTCOME, {**known, "problem": problem})
    if mode == "online" and problem is None:
        for mark in _marks(folder):
            mark.touch()
    return int(problem is not None)


def sent(folder: Path) -> int:
    """Return how many bytes of the events the server is known to have, by this program or by `wandb sync`."""
    found, marks = _outcome(folder), _marks(folder)
    by_wandb = found.get("written", 0) if marks and all(mark.exists() for mark in marks) else 0
    return max(found.get("bytes", 0), by_wandb)


def is_sent(folder: Path) -> bool | None:
    """Return whether the server is known to have all events of a run or study; None where nothing was logged."""
    events, known = folder / FOLDER / EVENTS, sent(folder)
    if not events.exists():
        return None
    # A last line that a kill has cut off is no event that could be sent; a file without any is damaged.
    return events.stat().st_size <= known or (known > 0 and next(placed_events(folder, known), None) is None)


def _outcome(folder: Path) -> dict[str, Any]:
    """Return what became of the last sending; nothing where that is damaged: the server knows what it has."""
    try:
        found = read_json(folder / FOLDER / OUTCOME)
    except (OSError, UserError):
        return {}
    whole = found if isinstance(found, dict) else {}
    return {key: value for key, value in whole.items() if key == "problem" or isinstance(value, int)}


def _marks(folder: Path) -> list[Path]:
    """Return the files by which W&B knows that it has sent its offline session."""
    return [path.with_suffix(".wandb.synced") for path in (folder / FOLDER / SESSIONS).glob("offline-run-*/*.wandb")]


AGENTS = ("WANDB_SWEEP_ID", "WANDB_RUN_ID", "WANDB_SWEEP_PARAM_PATH")
"""Variables by which an agent of W&B's sweeps names its run: there, all runs and their study would be that one."""


def _send(folder: Path, mode: Mode, parent: int | None, start: int) -> tuple[int, str | None]:
    """Send the events, while the run goes on or as far as there are; return their end, and what went wrong."""
    told = About.of(folder)
    if mode == "online" and (problem := out_of_reach()) is not None:
        return 0, problem
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # reports on W&B itself cost seconds at its end
    # A process that uses W&B names its own service to those it starts; there, a run that was refused stays "in use".
    for name in (*AGENTS, "WANDB_SERVICE"):
        os.environ.pop(name, None)
    import wandb

    with tempfile.TemporaryDirectory(prefix="ablab-wandb-", ignore_cleanup_errors=True) as scratch:
        os.environ.update(dict.fromkeys(("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"), scratch))
        home = Path(scratch)
        if mode == "offline":
            home = (folder / FOLDER).resolve()
            shutil.rmtree(home / SESSIONS, ignore_errors=True)
            os.environ["WANDB_DATA_DIR"] = str(home / SESSIONS)  # what W&B stages must outlive this process
        try:
            feed = Feed(wandb, told, home, parent, mode)
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
        for event, end in placed_events(folder, place):
            yield event, (place := end)
            last = last or (event["event"] == "closed" and end > start)
        if last:
            return
        time.sleep(POLL)


if __name__ == "__main__":
    program, where, *rest = sys.argv
    sys.argv = [program]  # W&B sends the words of a command, and the folder may lie below someone's home
    sys.exit(main(Path(where), "offline" if rest[:1] == ["offline"] else "online", *map(int, rest[1:])))
