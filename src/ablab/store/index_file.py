"""The file of a store's index: a line with its version and the digest of the rest, and outlines as JSON."""

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import ablab
from ablab.files import replacing
from ablab.store import former, outlines, records
from ablab.store.outlines import EvaluationOutline, OfPruned, Outline, Part, RecordOutline


class Stamp(NamedTuple):
    """What a file had when it was read; a file with another stamp has other content. Times in nanoseconds."""

    modified: int
    changed: int
    size: int
    inode: int


def stamp_of(path: str) -> Stamp | None:
    """Return the stamp of a file; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Stamp(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


KINDS: Mapping[str, type[Outline]] = {"record": RecordOutline, "evaluation": EvaluationOutline, "pruned": OfPruned}

NAMES = {kind: name for name, kind in KINDS.items()}

Row = list[Any]
"""Name of the kind, stamp, what is its own, and numbers of its parts."""


class IndexFile(NamedTuple):
    """The content of an index. `rows`: by the path of their file in the store."""

    parts: list[Part]
    rows: Mapping[str, Row]

    def outline(self, key: str, stamp: Stamp | None) -> Outline | None:
        """Return the outline of the file, if it was made of what has this stamp."""
        row = self.rows.get(key)
        return None if row is None or stamp is None or row[1] != [*stamp] else self._outline(row)

    def all(self) -> dict[str, tuple[Stamp, Outline]]:
        """Return every outline with its stamp."""
        return {key: (Stamp(*row[1]), self._outline(row)) for key, row in self.rows.items()}

    def _outline(self, row: Row) -> Outline:
        return KINDS[row[0]](row[2], *(self.parts[number] for number in row[3]))


def read_index(path: Path) -> IndexFile:
    """Return the content of an index; nothing where it is damaged, or of another version, or there is none."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        if head.decode() != _head(body):
            return IndexFile([], {})
        content = json.loads(body)
        return IndexFile([Part(part) for part in content["parts"]], content["rows"])
    except (OSError, ValueError):
        return IndexFile([], {})


def write_index(path: Path, found: Mapping[str, tuple[Stamp, Outline]]) -> None:
    """Replace the file atomically. OSError where the store cannot be written, ValueError for what JSON cannot hold."""
    table = _Parts()
    rows = {
        key: [NAMES[type(outline)], stamp, outline.own, list(map(table.number, outline.parts))]
        for key, (stamp, outline) in found.items()
    }
    body = json.dumps({"parts": table.contents, "rows": rows}, allow_nan=False, separators=(",", ":")).encode()
    with replacing(path) as temporary:
        temporary.write_bytes(f"{_head(body)}\n".encode() + body)


class _Parts:
    """Numbers parts, equal ones alike."""

    def __init__(self) -> None:
        self.contents: list[Mapping[str, Any]] = []
        self._by_text: dict[str, int] = {}
        self._known: dict[int, int] = {}

    def number(self, part: Part) -> int:
        """Return the number of a part. Most are one object in many outlines, so that few are compared as text."""
        if id(part) not in self._known:
            number = self._known[id(part)] = self._by_text.setdefault(json.dumps(part.content), len(self.contents))
            if number == len(self.contents):
                self.contents.append(part.content)
        return self._known[id(part)]


def _head(body: bytes) -> str:
    return f"{_version()} {hashlib.sha256(body).hexdigest()}"


@cache
def _version() -> str:
    """Return ablab's version with a digest of the code that decides what is read of a file, and what an outline has."""
    sources = [Path(str(module.__file__)).read_bytes() for module in (records, former, outlines)]
    return f"{ablab.__version__}-{hashlib.sha256(b''.join([*sources, Path(__file__).read_bytes()])).hexdigest()[:16]}"
