"""Differences between a result's code and libraries and the current ones, as one-line messages."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ablab.provenance.code import code
from ablab.provenance.equal import same_code
from ablab.provenance.machine import versions
from ablab.provenance.roots import Stage

NUMERICAL = ("torch", "pytorch-lightning", "numpy", "sentencepiece", "sacrebleu")
"""Libraries that affect numbers, their rounding, or the choice of weights."""

NAMED = 4
"""Maximum number of definitions that a message names."""


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


def other_origin(recorded: Mapping[str, Any], stretches: Iterable[Trained] = ()) -> str | None:
    """Describe the code or versions of a run's training that differ from the current ones; None if none do.

    `recorded`: the provenance of its record. `stretches`: of its training, if recorded.
    """
    known = {recorded["code"]: recorded.get("definitions", {}).get("training", {})}
    trained = [(recorded["code"], recorded.get("versions", {})), *((s.code, s.versions) for s in stretches)]
    for digest, libraries in trained:
        if (changed := other_code("training", digest, known.get(digest, {}))) is not None:
            commit = recorded.get("commit")
            return changed + (f" (commit {commit[:8]})" if commit else "")
        if (changed := other_versions(libraries)) is not None:
            return changed
    return None


def other_code(stage: Stage, digest: str | None, definitions: Mapping[str, str]) -> str | None:
    """Return `code differs in Dropout.forward, inverse_sqrt (training)`; None if it does not differ.

    `digest` and `definitions` are the recorded ones; without definitions, the message names only the digest.
    """
    if digest is not None and same_code(digest, code(stage).digest):
        return None
    changed = changed_definitions(stage, definitions) if definitions else []
    if not changed:
        return f"code {digest or 'of an older version'} ({stage})"
    more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    return f"code differs in {', '.join(changed[:NAMED])}{more} ({stage})"


def changed_definitions(stage: Stage, definitions: Mapping[str, str]) -> list[str]:
    """Return the names of definitions that changed since then, are new, or are gone from training."""
    now = code(stage).definitions
    gone = set(definitions) - set(now) if stage == "training" else set()
    return sorted(gone.union(name for name, digest in now.items() if definitions.get(name) != digest))


def other_versions(libraries: Mapping[str, str]) -> str | None:
    """Return the recorded versions that differ, as in `torch 2.11.0, numpy 2.1.0`; None if none do."""
    now = numerical_versions()
    other = [f"{name} {libraries.get(name)}" for name, version in now.items() if libraries.get(name) != version]
    return ", ".join(other) or None


def other_judge(recorded: Mapping[str, Any]) -> str | None:
    """Return a message if the evaluation code has changed since the run was trained; else None."""
    known = recorded.get("definitions", {})
    definitions = {**known.get("training", {}), **known.get("evaluation", {})}
    changed = other_code("evaluation", recorded.get("evaluation_code"), definitions)
    return changed and f"Judged by other code than when it was trained: {changed}; on record"
