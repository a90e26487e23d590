"""What takes long to find out about files, kept while they stay as they are.

A file is taken to be as it was while its size, its times and its place on the disk are. The system sets the time of the
last change itself, so that no tool can set it back. What is kept of large files lies in the user's cache; it may be
deleted, and what is damaged is found out anew.
"""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.files import json_digest, read_json, write_json

LARGE = 1 << 24
"""Bytes of files above which facts are kept for other processes; less is read in a moment."""

SETTLED = 2.0
"""Seconds since the last change after which another one shows: clocks of file systems are coarse."""

State = list[list[int]]

_found: dict[str, Sequence[Any]] = {}
"""Facts found in this process."""


def cache_folder(name: str) -> Path:
    """Return `$XDG_CACHE_HOME/ablab/<name>`, by default `~/.cache/ablab/<name>`; without a home, a temporary one."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if root.startswith("~"):  # there is no home
        root = f"{tempfile.gettempdir()}/cache-of-{os.getuid()}"
    return Path(root) / "ablab" / name


def kept(paths: Sequence[Path], question: Sequence[Any], find: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """Return what `find` returns of these files, plain values, or what it returned before if they are unchanged."""
    places = [str(path.resolve()) for path in paths]
    before = state_of(paths)
    key = json.dumps([places, list(question), before])
    if key not in _found:
        is_large = sum(size for size, *_ in before) > LARGE
        place = cache_folder("facts") / f"{json_digest([places, list(question)], 32)}.json"
        known = read_kept(place, before) if is_large else None
        _found[key] = find() if known is None else known
        if is_large and known is None and is_settled(paths, before):
            write_kept(place, before, _found[key])
    return _found[key]


def state_of(paths: Sequence[Path]) -> State:
    """Return what changes when one of the files does."""
    stats = [path.stat() for path in paths]
    return [[stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino] for stat in stats]


def is_settled(paths: Sequence[Path], before: State) -> bool:
    """Return whether the files are as before, and so old that a later change will show."""
    newest = max(max(mtime, ctime) for _, mtime, ctime, _ in before)
    return state_of(paths) == before and newest < time.time_ns() - SETTLED * 1e9


def read_kept(place: Path, state: State) -> Sequence[Any] | None:
    """Return what was written of files in this state; None if nothing was, or if it is damaged."""
    try:
        content = read_json(place)
        found: Sequence[Any] = content["found"]
        is_whole = content["digest"] == _digest(content["state"], found)
    except (OSError, UserError, LookupError, TypeError):
        return None
    return found if is_whole and content["state"] == state else None


def write_kept(place: Path, state: State, found: Sequence[Any]) -> None:
    """Write facts for other processes; where nothing can be written, they find them out themselves."""
    with suppress(OSError):
        write_json(place, {"state": state, "found": list(found), "digest": _digest(state, found)})


def _digest(state: State, found: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps([state, list(found)]).encode()).hexdigest()
