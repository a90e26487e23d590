"""The index of a store: outlines of records and evaluations, so that a list of many runs reads one file.

It is a cache, and can be deleted at any time. An outline counts only while its file has the times, size and inode that
it had when it was read. An index that is damaged or of another version is ignored, and written anew.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from ablab.store.index_file import IndexFile, Stamp, read_index, stamp_of, write_index
from ablab.store.outlines import AnyOutline, EvaluationOutline, OfPruned, Outline, Part, RecordOutline
from ablab.store.run_folder import RunFolder, is_of_pruned

INDEX = ".index.json"
"""File of the index, at the top of a store."""

WORTH_KEEPING = 50
"""Files that were read since the index was written, from which on it is written again: fewer are read as fast."""

SETTLED = 2 * 10**9
"""Nanoseconds for which a file must not have changed: within a tick of the clock, two contents have equal times."""


class Index:
    """Outlines of the files of one store: from its index where they are current, and else from the files themselves."""

    def __init__(self, store: Path) -> None:
        self._path = store / INDEX
        self._kept: IndexFile | None = None
        self._read: dict[str, tuple[Stamp, Outline]] = {}
        self._parts: dict[str, Part] = {}
        self._asked: dict[str, tuple[Stamp, Outline]] = {}

    def record(self, folder: RunFolder) -> RecordOutline | None:
        """Return the outline of a run's record, or None; UserError where it cannot be read."""
        key, stamp = _key(folder, "record.json"), stamp_of(f"{folder.path}/record.json")
        found = self._known(key, stamp)
        if isinstance(found, RecordOutline):
            return found
        record = folder.record()
        return None if record is None else self._remember(key, stamp, RecordOutline.of(record))

    def evaluation(self, folder: RunFolder, evaluation_id: str) -> EvaluationOutline | None:
        """Return the outline of an evaluation, or None; UserError where it cannot be read."""
        file = f"evaluations/{evaluation_id}.json"
        key, stamp = _key(folder, file), stamp_of(f"{folder.path}/{file}")
        found = self._known(key, stamp)
        if isinstance(found, EvaluationOutline):
            return found
        evaluation = folder.evaluation(evaluation_id)
        return None if evaluation is None else self._remember(key, stamp, EvaluationOutline.of(evaluation))

    def latest_evaluation(self, folder: RunFolder) -> EvaluationOutline | None:
        """Return the outline of the latest evaluation of the whole model, as `RunFolder.latest_evaluation` finds it."""
        return max(self._of_whole(folder), key=lambda one: (one.ended, one.evaluation_id), default=None)

    def keep(self) -> None:
        """Write the index if much was read that it lacks. A store that cannot be written does without."""
        settled = time.time_ns() - SETTLED
        news = {key: found for key, found in self._read.items() if max(found[0].modified, found[0].changed) < settled}
        if len(news) < WORTH_KEEPING:
            return
        # Another process may have written it meanwhile. Of runs that are gone, nothing is kept.
        kept = {key: found for key, found in read_index(self._path).all().items() if self._lies(key)}
        with suppress(OSError, ValueError):
            write_index(self._path, {**kept, **news})
        self._kept, self._read, self._asked = None, {}, {}

    def _of_whole(self, folder: RunFolder) -> Iterator[EvaluationOutline]:
        for name in _names(f"{folder.path}/evaluations"):
            key, path = _key(folder, f"evaluations/{name}"), f"{folder.path}/evaluations/{name}"
            stamp = stamp_of(path)
            found = self._known(key, stamp)
            if found is None and is_of_pruned(Path(path)):
                found = self._remember(key, stamp, OfPruned({}))
            if found is None:
                found = self.evaluation(folder, name.removesuffix(".json"))
            if isinstance(found, EvaluationOutline) and "kept" not in found.settings:
                yield found

    def _known(self, key: str, stamp: Stamp | None) -> Outline | None:
        then, found = self._read.get(key) or self._asked.get(key) or (None, None)
        if then is not None:
            return found if then == stamp else None
        if self._kept is None:
            self._kept = read_index(self._path)
        found = self._kept.outline(key, stamp)
        if found is not None and stamp is not None:
            self._asked[key] = stamp, found
        return found

    def _remember(self, key: str, stamp: Stamp | None, outline: AnyOutline) -> AnyOutline:
        """Remember an outline with the stamp that its file had before it was read."""
        shared = outline.sharing(lambda part: self._parts.setdefault(json.dumps(part.content), part))
        if stamp is not None:
            self._read[key] = stamp, shared
            self._asked.pop(key, None)
        return shared

    def _lies(self, key: str) -> bool:
        return os.path.exists(f"{self._path.parent}/{key}")


def index_of(store: Path) -> Index:
    """Return the index of a store, which this process reads once."""
    return _index_of(store.resolve())


@cache
def _index_of(store: Path) -> Index:
    return Index(store)


def _key(folder: RunFolder, file: str) -> str:
    *_, parent, name = str(folder.path).rsplit(os.sep, 2)
    return f"{parent}/{name}/{file}"


def _names(folder: str) -> list[str]:
    """Return the names of a folder's JSON files; none where there is no folder."""
    try:
        return [name for name in os.listdir(folder) if name.endswith(".json")]
    except (FileNotFoundError, NotADirectoryError):
        return []
