"""In what the code and the libraries of a result differ from those of now, in the words of one line."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ablab.provenance.code import code
from ablab.provenance.equal import same_code
from ablab.provenance.machine import versions
from ablab.provenance.roots import Stage

NUMERICAL = ("torch", "pytorch-lightning", "numpy", "sentencepiece", "sacrebleu")
"""Libraries that decide numbers, their rounding, or which weights are chosen."""

NAMED = 4
"""How many definitions a line names."""


class Trained(Protocol):
    """What decided the numbers of a part of training."""

    @property
    def code(self) -> str:
        """The digest of training's code."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Of the libraries in NUMERICAL."""


def numerical_versions() -> dict[str, str]:
    """Of the libraries that decide numbers, as far as they are installed."""
    return {name: found for name, found in versions().items() if name in NUMERICAL}


def comes_from_elsewhere(recorded: Mapping[str, Any], stretches: Iterable[Trained] = ()) -> str | None:
    """Which code or versions of a run's training are not those of now; None where all are.

    `recorded`: the provenance of its record. `stretches`: of its training, where they are on record.
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
    """`code differs in Dropout.forward, inverse_sqrt (training)`; None where it does not differ.

    `digest` and `definitions` are of then; only the digest is said where no definition is known.
    """
    if digest is not None and same_code(digest, code(stage).digest):
        return None
    changed = changed_definitions(stage, definitions) if definitions else []
    if not changed:
        return f"code {digest or 'of an older version'} ({stage})"
    more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    return f"code differs in {', '.join(changed[:NAMED])}{more} ({stage})"


def changed_definitions(stage: Stage, definitions: Mapping[str, str]) -> list[str]:
    """Names of what has changed since then, is new, or is gone from training."""
    now = code(stage).definitions
    gone = set(definitions) - set(now) if stage == "training" else set()
    return sorted(gone.union(name for name, digest in now.items() if definitions.get(name) != digest))


def other_versions(libraries: Mapping[str, str]) -> str | None:
    """`torch 2.11.0, numpy 2.1.0`: those that were others then; None where none was."""
    now = numerical_versions()
    other = [f"{name} {libraries.get(name)}" for name, version in now.items() if libraries.get(name) != version]
    return ", ".join(other) or None


def other_judge(recorded: Mapping[str, Any]) -> str | None:
    """A line where a run is to be judged by other code than that of the time when it was trained; else None."""
    known = recorded.get("definitions", {})
    definitions = {**known.get("training", {}), **known.get("evaluation", {})}
    changed = other_code("evaluation", recorded.get("evaluation_code"), definitions)
    return changed and f"Judged by other code than when it was trained: {changed}; on record"
