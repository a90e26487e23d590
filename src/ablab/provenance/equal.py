"""The table of equivalent code digests: a rewrite proved to give equal bits leaves results comparable.

`equal.json` ships with the code and is no part of a digest. Each entry has a stage, its digests, and the proof.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("equal.json")


def same_code(one: str, other: str) -> bool:
    """Return whether two digests are equal, or proved to give equal bits."""
    return representative(one) == representative(other)


def representative(digest: str) -> str:
    """Return one and the same digest for all digests that are equivalent to this one."""
    return min(equals().get(digest, {digest}))


@cache
def equals() -> Mapping[str, frozenset[str]]:
    """Return each digest of the table with all its equivalents."""
    return joined(json.loads(TABLE.read_text(encoding="utf-8")))


def joined(entries: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """Merge entries that share a digest."""
    classes: dict[str, frozenset[str]] = {}
    for entry in entries:
        whole = frozenset(entry["digests"]).union(*(classes.get(digest, ()) for digest in entry["digests"]))
        classes.update(dict.fromkeys(whole, whole))
    return classes
