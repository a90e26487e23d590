"""The events of a run: all that a dashboard shows of it, in a file to which the run only appends.

Each says when it was told, in seconds since 1970. The run knows no server. A process of its own sends the events on
while the run goes on (`sender`), or `ablab sync` does later; either starts where the server's own count of rows says,
so that each row is there once.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

from ablab.config.options import models_of
from ablab.files import json_digest
from ablab.files.disk import check_guards, end_of_lines, keep_names, replacing
from ablab.tracking.tracker import RunCard, Tracker

FOLDER = "tracking"
"""Folder of the events and their pictures, in the folder of a run or of a study."""

EVENTS = "events.jsonl"

STEP = "step"
"""Name of the usual axis: our optimiser steps."""

ROWS = ("row", "table", "picture", "chart")
"""Kinds of events that are a row of the tracker's history; others: opened, summary, study, model, dataset, closed."""

ONCE = (*ROWS, "model", "dataset")
"""Kinds of events that are told once."""

STUDIES = "studies"
"""Key of the run's arm in each study that has the run, in the config and in the event of a study."""

Event = dict[str, Any]


class Events(Tracker):
    """Appends all that it is told to the events of the run or study in `folder`.

    A row that an earlier process of the run has told already is left out: after a kill, some steps are trained again.
    An error of the disk ends the telling, not the run; `say` is told once.
    """

    shows_pictures = True

    def __init__(self, folder: Path, card: RunCard, say: Callable[[str], None]) -> None:
        self._folder, self._say = folder / FOLDER, say
        self._wanted = models_of(card.artifacts)
        self._file: FileIO | None = None
        self._told: set[tuple[object, ...]] = set()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / EVENTS
            self._told = {_identity(event) for event in events_of(folder) if event["event"] in ONCE}
            self._file = path.open("ab+", buffering=0)
            self._file.truncate(end_of_lines(self._file))  # a kill may have torn the last line
        except OSError as error:
            self._give_up(error)
        self._append("opened", card=card.model_dump())

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Append points of curves at a step."""
        self._row("row", axis=STEP, x=step, values=dict(values))

    def along(self, axis: str, x: float, values: Mapping[str, float]) -> None:
        """Append points of curves on an axis of their own."""
        self._row("row", axis=f"axis/{axis}", x=x, values=dict(values))

    def table(
        self, step: int, key: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, of: str = ""
    ) -> None:
        content = {"key": key, "columns": list(columns), "rows": [list(row) for row in rows]}
        self._row("table", axis=STEP, x=step, **content, **_of(of))

    def picture(self, step: int, key: str, path: Path, caption: str, *, of: str = "") -> None:
        """Append a picture, with a copy of its file, which later pictures may overwrite."""
        if self._file is None:
            return
        name = f"{key.replace('/', '-')}-{step}{f'-{of}' if of else ''}{path.suffix}"
        try:
            with replacing(self._folder / name) as temporary:
                shutil.copyfile(path, temporary)
        except OSError as error:
            self._give_up(error)
        self._row("picture", axis=STEP, x=step, key=key, file=name, caption=caption, **_of(of))

    def chart(self, step: int, key: str, figure: Mapping[str, Any]) -> None:
        """Append a chart in Plotly's format."""
        self._row("chart", axis=STEP, x=step, key=key, figure=dict(figure))

    def summary(self, values: Mapping[str, Any]) -> None:
        self._append("summary", values=dict(values))

    def model(self, kind: str, name: str, files: Sequence[Path], digest: str) -> None:
        """Append where a model lies in the folder of the run, if models of the kind are wanted."""
        if kind in self._wanted:
            places = [path.relative_to(self._folder.parent).as_posix() for path in files]
            self._row("model", key=name, files=places, digest=digest)

    def dataset(self, name: str, about: Mapping[str, Any]) -> None:
        self._row("dataset", key=name, about=dict(about), digest=json_digest(about, 11))

    def keep(self) -> None:
        if self._file is None:
            return
        try:
            os.fsync(self._file.fileno())
            keep_names(self._folder)
        except OSError as error:
            self._give_up(error)

    def finish(self, *, failed: bool) -> None:
        """Append the end, and close the file."""
        self._append("closed", failed=failed)
        self.keep()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _row(self, kind: str, **content: Any) -> None:
        identity = _identity(content)
        if identity not in self._told:
            self._told.add(identity)
            self._append(kind, **content)

    def _append(self, kind: str, **content: Any) -> None:
        if self._file is None:
            return
        event = {"event": kind, "at": round(time.time(), 3), **content}
        line = json.dumps(event, ensure_ascii=False, default=float).encode() + b"\n"
        check_guards(self._folder / EVENTS)
        try:
            if self._file.write(line) != len(line):
                raise OSError(None, "the disk took a part of a line")
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._say(f"{self._folder / EVENTS} cannot be written ({error.strerror}): W&B will miss the rest")


def events_of(folder: Path) -> Iterator[Event]:
    """Yield the events of a run or study, as far as their lines are whole and can be read."""
    return (event for event, _ in placed_events(folder))


def placed_events(folder: Path, start: int = 0) -> Iterator[tuple[Event, int]]:
    """Yield the events from byte `start` on, each with the byte after it."""
    try:
        file = (folder / FOLDER / EVENTS).open("rb")
    except FileNotFoundError:
        return
    with file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                return
            start += len(line)
            try:
                event = json.loads(line)
            except ValueError:
                continue  # a damaged line hides no other
            if isinstance(event, dict) and "event" in event:
                yield event, start


def _identity(content: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the identity of a row, its axis, its place there, its keys and what it is of; or of an artifact."""
    place = content.get("x", content.get("digest"))
    return content.get("axis"), place, content.get("key"), content.get("of"), *sorted(content.get("values", ()))


def _of(of: str) -> dict[str, str]:
    return {"of": of} if of else {}
