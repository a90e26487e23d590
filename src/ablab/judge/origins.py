"""Provenance of runs: differences in code, libraries, threads and device between the sides of a comparison."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ablab.code.differences import RecordedCode, comparable, made_by, of_other_version, same_code
from ablab.code.machine import NUMERICAL
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.store.records import UNNAMED, Curve, Evaluation, Record

Facts = Mapping[str, object]
"""Provenance by the names that the report uses."""


def unlike(arm: ArmRuns, baseline: ArmRuns) -> str | None:
    """Return what differs between runs of both arms under one seed, such as `code, threads`; None where nothing does.

    Arms that share no seed are compared run by run, each with every other.
    """
    theirs = {run.seed: run for run in baseline.runs if run.record is not None}
    ours = {run.seed: run for run in arm.runs if run.record is not None}
    shared = sorted(ours.keys() & theirs.keys())
    both = [(ours[seed], theirs[seed]) for seed in shared] or [(a, b) for a in ours.values() for b in theirs.values()]
    facts = [(_facts(one), _facts(other)) for one, other in both]
    differing = [name for a, b in facts for name in a if name in b and _differ(a[name], b[name])]
    return ", ".join(dict.fromkeys(differing)) or None


def odd(run: ArmRun) -> str | None:
    """Return what is unusual in the provenance of one run; None where all of it has one origin."""
    if run.record is None:
        return None
    notes = [] if run.record.mixed is None else [f"mixed: {run.record.mixed} changed during training"]
    if (older := of_other_version(*{made.digest for made in codes_of(run.record)})) is not None:
        notes.append(f"made by {older}")
    trained_with = made_by(run.record.provenance, "evaluation")
    if run.evaluation is not None and trained_with.digest and _differ([trained_with], [_judge(run.evaluation)]):
        notes.append("judged by other code than when it was trained")
    return "; ".join(notes) or None


def _differ(one: object, other: object) -> bool:
    """Return whether two facts differ. Code is a list; what cannot be compared is not said to differ."""
    if not isinstance(one, list) or not isinstance(other, list):
        return one != other
    known = [(a, b) for a in one for b in other if comparable(a.digest, b.digest)]
    return any(not same_code(a, b) for a, b in known)


def codes_of(record: Record) -> list[RecordedCode]:
    """Return the code of all stretches of training, or of the record where it lists no stretches."""
    digests: list[str | None] = [stretch.code for stretch in record.stretches]
    digests = digests or [None]
    return [made_by(record.provenance, "training", digest) for digest in dict.fromkeys(digests)]


def versions_of(codes: Sequence[RecordedCode]) -> int:
    """Return the number of versions of the code among these that differ from each other."""
    found: list[RecordedCode] = []
    for each in codes:
        if all(_differ([each], [other]) for other in found):
            found.append(each)
    return len(found)


def versions_of_unnamed(records: Iterable[Record]) -> dict[str, int]:
    """Return the number of versions of each file that is no input, of those of which these runs had several."""
    digests: dict[str, set[str]] = {}
    for record in records:
        for path, digest in record.provenance.get(UNNAMED, {}).items():
            digests.setdefault(path, set()).add(digest)
    return {path: len(found) for path, found in digests.items() if len(found) > 1}


def _judge(evaluation: Evaluation | Curve) -> RecordedCode:
    return RecordedCode(evaluation.provenance_code, evaluation.components)


def _facts(run: ArmRun) -> Facts:
    assert run.record is not None
    facts: dict[str, object] = {**_of_training(run.record)}
    facts |= {f"{path}, which is no input": digest for path, digest in run.record.provenance.get(UNNAMED, {}).items()}
    if run.evaluation is not None:
        facts["evaluation code"] = [_judge(run.evaluation)]
    for curve in run.curves:
        facts[f"{'head ' * curve.of_heads}curve code"] = [_judge(curve)]
    return facts


def _of_training(record: Record) -> Facts:
    """Return the facts of all stretches of training, or of the record where it lists no stretches."""
    if record.stretches:
        return {
            "code": codes_of(record),
            "library versions": {_numerical(stretch.versions) for stretch in record.stretches},
            "threads": {stretch.threads for stretch in record.stretches},
            "device": {stretch.device for stretch in record.stretches},
        }
    runtime, machine = record.runtime, record.provenance.get("machine", {})
    device = runtime.get("device")
    return {
        "code": codes_of(record),
        "library versions": {_numerical(record.provenance.get("versions", {}))},
        "threads": {runtime.get("threads")},
        "device": {machine.get("processor", device) if device == "cpu" else device},
    }


def _numerical(versions: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, version) for name, version in versions.items() if name in NUMERICAL))
