"""Differences between a result's code and libraries and the current ones, as one-line messages.

Code differs unless the table of equivalent digests, `equal.json`, says that a rewrite was proved to give equal bits: it
ships with the code and is no part of a digest. Each entry has a stage, its digests, and the proof. Since version 2 they
are digests of components. Those of another version have no equals here. `unless` names components with which a rewrite
changed numbers: the others of such a recipe have no equals by that entry.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

from ablab.code.code import VERSION, Stage, code, version_of
from ablab.code.machine import NUMERICAL, versions

TABLE = Path(__file__).with_name("equal.json")

NAMED = 4
"""Maximum number of definitions that a message names."""


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
    equal = equals(frozenset(one.components.keys() | other.components.keys()))

    def alike(first: str, second: str) -> bool:
        return first == second or second in equal.get(first, ())

    shared = one.components.keys() & other.components.keys()
    return alike(one.digest, other.digest) or (
        bool(shared) and all(alike(one.components[name], other.components[name]) for name in shared)
    )


@cache
def equals(components: frozenset[str]) -> Mapping[str, frozenset[str]]:
    """Return each digest of the table with all its equivalents in recipes of these components."""
    entries = json.loads(TABLE.read_text(encoding="utf-8"))
    return joined(entry for entry in entries if components.isdisjoint(entry.get("unless", ())))


def joined(entries: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """Merge entries that share a digest."""
    classes: dict[str, frozenset[str]] = {}
    for entry in entries:
        whole = frozenset(entry["digests"]).union(*(classes.get(digest, ()) for digest in entry["digests"]))
        classes.update(dict.fromkeys(whole, whole))
    return classes


class Trained(Protocol):
    """The code and libraries behind a part of training."""

    @property
    def code(self) -> str:
        """The digest of the training code."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the libraries in NUMERICAL."""


def numerical_versions() -> dict[str, str]:
    """Return the versions of the installed libraries that affect numbers."""
    return {name: found for name, found in versions().items() if name in NUMERICAL}


def made_by(
    recorded: Mapping[str, Any], stage: Literal["training", "evaluation"], digest: str | None = None
) -> RecordedCode:
    """Return the code that the provenance of a record names for a stage, or the code of this digest.

    The record knows the components of its own digest alone.
    """
    own = str(recorded.get("code" if stage == "training" else "evaluation_code") or "")
    known = recorded.get("components", {}).get(stage, {})
    return RecordedCode(own, known) if digest in (None, own) else RecordedCode(str(digest))


def other_origin(
    recorded: Mapping[str, Any], recipe: Mapping[str, Any], stretches: Iterable[Trained] = ()
) -> str | None:
    """Describe the code or versions of a run's training that differ from the current ones; None if none do.

    `recorded`: the provenance of its record. `stretches`: of its training, if recorded.
    """
    known = {recorded["code"]: recorded.get("definitions", {}).get("training", {})}
    own = (recorded["code"], recorded.get("versions", {}))
    others = [each for each in ((s.code, s.versions) for s in stretches) if each != own]
    for digest, libraries in [own, *others]:
        made = made_by(recorded, "training", digest)
        if (changed := other_code("training", recipe, made, known.get(digest, {}))) is not None:
            commit = recorded.get("commit")
            return changed + (f" (commit {commit[:8]})" if commit else "")
        if (changed := other_versions(libraries)) is not None:
            return changed
    return None


def of_other_version(*digests: str | None) -> str | None:
    """Return `code that cannot be compared (digest version 1)` if a digest is not of the current version; else None."""
    others = sorted({version_of(str(digest)) for digest in digests} - {VERSION})
    return f"code that cannot be compared (digest version {' and '.join(others)})" if others else None


def other_code(
    stage: Stage, recipe: Mapping[str, Any], made: RecordedCode, definitions: Mapping[str, str]
) -> str | None:
    """Return `code differs in Dropout.forward, inverse_sqrt (training)`; None if it does not differ.

    `made` and `definitions` are the recorded ones; without definitions, the message names only the digest. Code whose
    digest is of another version cannot be compared, and is not said to differ.
    """
    now = code(stage, recipe)
    if of_other_version(made.digest) or same_code(made, RecordedCode(now.digest, now.components)):
        return None
    changed = changed_definitions(now.definitions, definitions, gone=stage == "training") if definitions else []
    if not changed:
        return f"code {made.digest} ({stage})"
    more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    return f"code differs in {', '.join(changed[:NAMED])}{more} ({stage})"


def changed_definitions(now: Mapping[str, str], then: Mapping[str, str], *, gone: bool = True) -> list[str]:
    """Return the names of definitions that changed since then, are new, or, if asked for, are gone."""
    lost = set(then) - set(now) if gone else set()
    return sorted(lost.union(name for name, digest in now.items() if then.get(name) != digest))


def other_versions(libraries: Mapping[str, str]) -> str | None:
    """Return the recorded versions that differ, as in `torch 2.11.0, numpy 2.1.0`; None if none do."""
    now = numerical_versions()
    other = [f"{name} {libraries.get(name)}" for name, version in now.items() if libraries.get(name) != version]
    return ", ".join(other) or None


def other_judge(recorded: Mapping[str, Any], recipe: Mapping[str, Any]) -> str | None:
    """Return a message if the evaluation code has changed since the run was trained; else None."""
    known = recorded.get("definitions", {})
    definitions = {**known.get("training", {}), **known.get("evaluation", {})}
    changed = other_code("evaluation", recipe, made_by(recorded, "evaluation"), definitions)
    return changed and f"Judged by other code than when it was trained: {changed}; on record"
