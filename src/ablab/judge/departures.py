"""What is reported against what was registered: claims, arms, seeds and runs in which the two differ, a line each."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ablab.errors import UserError
from ablab.files import read_json
from ablab.judge.claims import exploratory
from ablab.judge.document import Document
from ablab.judge.flaws import is_history, trained_again
from ablab.judge.registration import Registered, listed
from ablab.judge.selection import SelectedArms
from ablab.store.chain import Chain, History
from ablab.store.finished import FinishedRun
from ablab.store.pack import unpacked
from ablab.study.claims import Settled
from ablab.study.extending import Closing, closings, extensions
from ablab.text import counted


def departures(selection: SelectedArms) -> list[str]:
    """Return in what a selection with its flaws differs from what was registered, or leaves something out."""
    awaited = {id(run) for run in selection.awaited}
    missing = [(arm.name, run.seed) for arm in selection.arms for run in arm.runs if id(run) in awaited]
    return [*selection.notes, *filter(is_history, selection.flaws), *_exploratory(selection), *_missing(missing)]


def _exploratory(selection: SelectedArms) -> Iterator[str]:
    """Yield each reason why claims are exploratory, with these claims, unless a note or a flaw says it."""
    reasons: dict[str, list[Settled]] = {}
    for claim in selection.claims:
        reason = exploratory(selection, claim)
        if reason is not None and reason not in selection.notes and not selection.flaws:
            reasons.setdefault(reason, []).append(claim)
    for reason, claims in reasons.items():
        yield f"{'all claims' if len(claims) == len(selection.claims) else _listed(claims)}: {reason}"


def _listed(claims: Iterable[Settled]) -> str:
    return "; ".join(claim.words for claim in claims)


def _missing(runs: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Yield a line on registered runs that are not there, by arm and seed."""
    seeds: dict[str, list[int]] = {}
    for arm, seed in sorted(runs):
        seeds.setdefault(arm, []).append(seed)
    if seeds:
        listed = "; ".join(f"{arm}, seed{'s' * (len(own) > 1)} {counted(own)}" for arm, own in seeds.items())
        yield f"registered runs that are not there, and were not given up: {listed}"


def departures_of_archive(folder: Path, chain: Chain, runs: Sequence[FinishedRun]) -> list[str]:
    """Return the same of an unpacked archive, which has no experiment file: what it registered and what it reports."""
    registered = {path.parent: Registered.of(path.parent) for path in sorted(folder.glob("studies/*/registered.json"))}
    said = [] if registered else ["nothing was registered: no claim about these runs was fixed before them"]
    for study, first in registered.items():
        if first is not None:
            said += [f"{study.name}: {line}" for line in _of_study(folder, study, first, runs)]
    again: dict[str, list[str]] = {}
    for run in runs:
        for kind in trained_again(chain.histories.get(run.run_id, History()), run.folder):
            again.setdefault(kind, []).append(run.run_id)
    return [*said, *(f"{kind}: {', '.join(names)}" for kind, names in again.items())]


def _of_study(folder: Path, study: Path, first: Registered, runs: Sequence[FinishedRun]) -> Iterator[str]:
    if first.runs_already_done:
        yield f"{first.runs_already_done} of its runs had finished when it was registered"
    yield from _of_claims("registered at a later launch", first.claims, Registered.every(study)[-1].claims)
    index = unpacked(folder)
    assert index is not None, "an archive has an index"
    if study.name != index.name and not (study / "runs.json").exists():
        return  # of another study, which was packed for its claims alone
    for reported in _reported(folder):
        yield from _of_claims("reported", first.claims, reported)
    closed = closings(study)
    yield from (one.said for one in closed)
    there = {(run.record.condition_id, run.folder.recipe()["seed"]) for run in runs}
    absent = {(arm, seed) for arm, seed in _expected(study, first) if (first.conditions[arm], seed) not in there}
    yield from _missing(absent - _given_up(study, closed))


def _of_claims(how: str, first: Sequence[Settled], others: Sequence[Settled]) -> Iterator[str]:
    """Yield the claims that are in one of the two alone, others being those reported, or registered later."""
    then, now = ({_about(claim) for claim in claims} for claims in (first, others))
    if news := [claim for claim in others if _about(claim) not in then]:
        yield f"claims {how}, and not registered at the first: {_listed(news)}"
    if gone := [claim for claim in first if _about(claim) not in now]:
        yield f"claims registered at the first launch, and not {how}: {_listed(gone)}"


def _about(claim: Settled) -> tuple[object, ...]:
    """Return what a report has of a claim too."""
    return claim.arm, claim.baseline, claim.metric, claim.expect, claim.margin, claim.secondary


def _reported(folder: Path) -> Iterator[list[Settled]]:
    """Yield the claims of each report that was packed and can be read."""
    for path in folder.glob("reports/*/report.json"):
        with suppress(UserError, ValueError):
            claims = Document.model_validate(read_json(path)).claims
            about = {"arm", "baseline", "metric", "expect", "margin", "secondary"}
            yield [Settled.model_validate(claim.model_dump(include=about)) for claim in claims]


def _expected(study: Path, first: Registered) -> Iterator[tuple[str, int]]:
    """Yield arm and seed of each run that was registered: where seeds are added, of those that were so far."""
    added = {arm: seeds for one in extensions(study)[-1:] for arm, seeds in one.seeds.items()}
    for arm in first.conditions:
        count = None if first.looks is None else added.get(arm, first.looks[0])
        yield from ((arm, seed) for seed in first.seeds[:count])


def _given_up(study: Path, closed: Sequence[Closing]) -> set[tuple[str, int]]:
    """Return arm and seed of the runs that were given up, as the study lists its runs."""
    ids = {run.split()[0] for closing in closed for run in closing.runs}
    return {(run.arm, run.seed) for run in listed(study) if run.run_id in ids}
