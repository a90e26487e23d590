"""The index of a store: evaluations without their sentences, so that a list of many runs reads one file for them.

It is a cache, and can be deleted at any time. An outline counts only while its file has the times, size and inode that
it had when it was read. An index that is damaged or of another version is ignored, and written anew. Reports never read
it.
"""

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

import ablab
from ablab.files import write_bytes
from ablab.store import records
from ablab.store.records import EvaluationOutline
from ablab.store.run_folder import RunFolder, is_of_pruned

INDEX = ".index.json"
"""File of the index, at the top of a store: a line with its version and the digest of the rest, and the rest."""

WORTH_KEEPING = 50
"""Files that were read since the index was written, from which on it is written again: fewer are read as fast."""

SETTLED = 2 * 10**9
"""Nanoseconds for which a file must not have changed: within a tick of the clock, two contents have equal times."""

Stamp = tuple[int, int, int, int]
"""When a file was modified and changed, in nanoseconds, its size and its inode; another stamp is another content."""

Entries = dict[str, tuple[Stamp, EvaluationOutline | None]]
"""Outlines by the path of their file in the store; None for an evaluation of a pruned model, which no list tells."""

_ENTRIES = TypeAdapter(Entries)


class Index:
    """Outlines of the evaluations of one store: from its index where they are current, and else from the files."""

    def __init__(self, store: Path) -> None:
        self._path = store / INDEX
        self._kept: Entries | None = None
        self._read: Entries = {}

    def evaluation(self, folder: RunFolder, evaluation_id: str) -> EvaluationOutline | None:
        """Return the outline of an evaluation of the whole model, or None; UserError where it cannot be read."""
        return self._outline(folder, f"{evaluation_id}.json")

    def latest_evaluation(self, folder: RunFolder) -> EvaluationOutline | None:
        """Return the outline of the latest evaluation of the whole model, as `RunFolder.latest_evaluation` finds it."""
        return max(self._of_whole(folder), key=lambda one: (one.ended, one.evaluation_id), default=None)

    def keep(self) -> None:
        """Write the index if much was read that it lacks. A store that cannot be written does without."""
        settled = time.time_ns() - SETTLED
        news = {key: found for key, found in self._read.items() if max(found[0][:2]) < settled}
        if len(news) < WORTH_KEEPING:
            return
        # Another process may have written it meanwhile. Of runs that are gone, nothing is kept.
        there = {key: found for key, found in read_index(self._path).items() if (self._path.parent / key).exists()}
        with suppress(OSError, ValueError):
            write_index(self._path, {**there, **news})
        self._kept, self._read = None, {}

    def _of_whole(self, folder: RunFolder) -> Iterator[EvaluationOutline]:
        for name in _names(f"{folder.path}/evaluations"):
            found = self._outline(folder, name)
            if found is not None and "kept" not in found.settings:
                yield found

    def _outline(self, folder: RunFolder, name: str) -> EvaluationOutline | None:
        path = f"{folder.path}/evaluations/{name}"
        if (stamp := _stamp_of(path)) is None:
            return None
        if self._kept is None:
            self._kept = read_index(self._path)
        key = f"{folder.path.parent.name}/{folder.path.name}/evaluations/{name}"
        then, found = self._read.get(key) or self._kept.get(key) or (None, None)
        if then != stamp:
            whole = None if is_of_pruned(Path(path)) else folder.evaluation(name.removesuffix(".json"))
            found = None if whole is None else EvaluationOutline.model_validate(whole)
            self._read[key] = stamp, found
        return found


def index_of(store: Path) -> Index:
    """Return the index of a store, which this process reads once."""
    return _index_of(store.resolve())


@cache
def _index_of(store: Path) -> Index:
    return Index(store)


def read_index(path: Path) -> Entries:
    """Return the content of an index; nothing where it is damaged, or of another version, or there is none."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        return _ENTRIES.validate_json(body) if head.decode() == _head(body) else {}
    except (OSError, ValueError):
        return {}


def write_index(path: Path, entries: Mapping[str, tuple[Stamp, EvaluationOutline | None]]) -> None:
    """Replace the file atomically. OSError where the store cannot be written."""
    body = _ENTRIES.dump_json(dict(entries))
    write_bytes(path, f"{_head(body)}\n".encode() + body)


def _head(body: bytes) -> str:
    return f"{_version()} {hashlib.sha256(body).hexdigest()}"


@cache
def _version() -> str:
    """Return ablab's version with a digest of the code that decides what is read of a file, and what an outline has."""
    sources = b"".join(Path(str(file)).read_bytes() for file in (records.__file__, __file__))
    return f"{ablab.__version__}-{hashlib.sha256(sources).hexdigest()[:16]}"


def _stamp_of(path: str) -> Stamp | None:
    """Return the stamp of a file; None where there is none."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _names(folder: str) -> list[str]:
    """Return the names of a folder's JSON files; none where there is no folder."""
    try:
        return [name for name in os.listdir(folder) if name.endswith(".json") and name[0] != "."]
    except (FileNotFoundError, NotADirectoryError):
        return []
