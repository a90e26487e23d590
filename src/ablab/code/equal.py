"""The table of equivalent code digests: a rewrite proved to give equal bits leaves results comparable.

`equal.json` ships with the code and is no part of a digest. Each entry has a stage, its digests, and the proof. Since
version 2 they are digests of components. Those of another version have no equals here.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ablab.code.code import version_of

TABLE = Path(__file__).with_name("equal.json")


@dataclass(frozen=True)
class RecordedCode:
    """The code behind a result: its digest and, if they were recorded, those of its components."""

    digest: str
    components: Mapping[str, str] = field(default_factory=dict)


def comparable(one: str, other: str) -> bool:
    """Return whether two digests are of one version, so that a difference of theirs is one of the code."""
    return version_of(one) == version_of(other)


def same_code(one: RecordedCode, other: RecordedCode) -> bool:
    """Return whether two results were made by the same code, or by code that is proved to give equal bits.

    Of two recipes, it is the code that both share. What cannot be compared is not the same.
    """
    if representative(one.digest) == representative(other.digest):
        return True
    shared = one.components.keys() & other.components.keys()
    return bool(shared) and all(
        representative(one.components[name]) == representative(other.components[name]) for name in shared
    )


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
