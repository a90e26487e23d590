"""Judge claims: verdicts in numbers and in words."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from ablab.judge.claim_words import Caveats, claim_words, strength, verdict_words
from ablab.judge.contrasts import arms_of, evidence_of
from ablab.judge.document import ClaimLine, SeedDifference, Span
from ablab.judge.estimates import Estimates, NearFailures, borrows, estimates, nearly_failed
from ablab.judge.evidence import Evidence, chosen
from ablab.judge.failures import SHARE, compared, failures
from ablab.judge.looks import follow_claims, seeds_of, with_looks
from ablab.judge.metrics import Measure
from ablab.judge.origins import unlike
from ablab.judge.prospects import advice
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.interval import NotTestable
from ablab.statistics.looks import Looks
from ablab.statistics.moderated import Moderated
from ablab.statistics.sequential import Watched
from ablab.statistics.verdict import Case, Expectation, Failures, Verdict, so_far, verdicts
from ablab.study.claims import Settled, asked
from ablab.study.study import names_of
from ablab.text import counted, how_many


class JudgedClaim(NamedTuple):
    """A claim, what its runs show, and its verdict. `near_failures`: runs that nearly failed, in words."""

    claim: Settled
    measure: Measure
    found: Evidence | Estimates
    verdict: Verdict
    near_failures: list[str]


def judge(selection: SelectedArms) -> list[ClaimLine]:
    """Judge the claims of the study, under one family-wise error rate for the primary and one for the secondary."""
    if selection.looks is not None:
        return _judge_looks(selection, selection.looks)
    reading = _Reading(selection)
    found = [reading.evidence(claim) for claim in selection.claims]
    cases = [_case(claim, _measure(selection, claim), one) for claim, one in zip(selection.claims, found, strict=True)]
    judged = [so_far(case) for case in cases] if selection.awaited else _by_family(selection.claims, cases)
    return [reading.line(*about) for about in zip(selection.claims, found, judged, strict=True)]


def _judge_looks(selection: SelectedArms, looks: Looks) -> list[ClaimLine]:
    """Judge claims whose seeds are added until these are settled. A look sees no run of a later seed."""
    readings = cache(lambda seeds: _Reading(selection.up_to(seeds)))

    def watched(claim: Settled) -> Watched:
        measure = _measure(selection, claim)
        expect, margin = _expectation(claim, measure), _margin(claim, measure)

        def at(seeds: int) -> Evidence:
            then = readings(seeds).selection
            return _shares(*arms_of(then, claim)) if measure is SHARE else evidence_of(then, claim, measure)

        try:
            there = seeds_of(arms_of(selection, claim))
        except NotTestable as reason:
            return Watched.of(Case(expect, margin, reason), looks)
        return Watched(expect, margin, there, at)

    lines = []
    followed = follow_claims(selection, [watched(claim) for claim in selection.claims])
    for claim, one in zip(selection.claims, followed, strict=True):
        reading, verdict = readings(one.seeds), one.verdict
        # Before the first look nothing is read.
        found = NotTestable(verdict.reason) if verdict.difference is None else reading.evidence(claim)
        lines.append(with_looks(reading.line(claim, found, verdict), one, selection))
    return lines


class _Reading:
    """What the runs of a selection show of its claims."""

    def __init__(self, selection: SelectedArms):
        self.selection = selection
        self._failing: dict[Measure, NearFailures] = {}

    def evidence(self, claim: Settled) -> Evidence | Estimates:
        """Return what decides a claim."""
        measure = _measure(self.selection, claim)
        return _evidence(self.selection, claim, measure, self._near_failures(claim, measure))

    def line(self, claim: Settled, found: Evidence | Estimates, verdict: Verdict) -> ClaimLine:
        """Return the line of a claim."""
        measure = _measure(self.selection, claim)
        named = _named(self.selection, claim, self._near_failures(claim, measure))
        return _line(self.selection, JudgedClaim(claim, measure, found, verdict, named))

    def _near_failures(self, claim: Settled, measure: Measure) -> NearFailures:
        if not borrows(claim, measure):
            return {}
        if measure not in self._failing:  # once for each measure: with many arms this takes longer than all tests
            self._failing[measure] = nearly_failed(self.selection.rows, measure)
        return self._failing[measure]


def _by_family(claims: Sequence[Settled], cases: Sequence[Case]) -> list[Verdict]:
    judged: dict[int, Verdict] = {}
    for secondary in (False, True):
        members = [number for number, claim in enumerate(claims) if claim.secondary == secondary]
        judged |= zip(members, verdicts([cases[number] for number in members]), strict=True)
    return [judged[number] for number in range(len(claims))]


def _measure(selection: SelectedArms, claim: Settled) -> Measure:
    return SHARE if claim.metric == "failures" else selection.measure_of(claim)


def _evidence(
    selection: SelectedArms, claim: Settled, measure: Measure, near_failures: NearFailures
) -> Evidence | Estimates:
    try:
        arms = arms_of(selection, claim)
    except NotTestable as reason:
        return reason
    return _shares(*arms) if measure is SHARE else estimates(selection, claim, measure, near_failures)


def _case(claim: Settled, measure: Measure, found: Evidence | Estimates) -> Case:
    expect, margin = _expectation(claim, measure), _margin(claim, measure)
    if not isinstance(found, Estimates):
        return Case(expect, margin, found)
    decisive = found.decisive
    return Case(expect, margin, decisive if isinstance(decisive, Moderated) else found.differences)


def _margin(claim: Settled, measure: Measure) -> float:
    """Return the margin of a claim: shares of failures have none."""
    return 0.0 if measure is SHARE else claim.margin


def _expectation(claim: Settled, measure: Measure) -> Expectation:
    if claim.expect == "not_worse":
        return "not_less" if measure.higher_is_better else "not_greater"
    return claim.expect


def _shares(arm: ArmRuns, baseline: ArmRuns) -> Failures | NotTestable:
    try:
        return failures(arm, baseline, higher_is_better=False)
    except NotTestable as reason:
        return reason


def _line(selection: SelectedArms, judged: JudgedClaim) -> ClaimLine:
    claim, measure, found, verdict, _ = judged
    shown, interval = compared(found, measure), verdict.decided_by
    marks = _marks(selection, judged)
    said = claim_words(claim, measure)
    return ClaimLine(
        arm=claim.arm,
        baseline=claim.baseline,
        metric=claim.metric,
        about=measure.title,
        title=shown.title,
        unit=shown.unit,
        digits=shown.digits,
        expect=claim.expect,
        margin=claim.margin,
        published=claim.published,
        source=claim.source,
        outcome=verdict.outcome,
        claimed=said,
        words=f"{said}: {verdict_words(claim, (measure, shown), verdict, _family(selection, claim), marks)}",
        n=verdict.n or len(_shared_seeds(selection, claim)),
        difference=verdict.difference,
        interval=Span.of(interval) if interval else None,
        simultaneous=Span.of(verdict.simultaneous) if verdict.simultaneous else None,
        p=verdict.p,
        corrected=verdict.corrected,
        detectable=verdict.detectable,
        reason=verdict.reason,
        exploratory=exploratory(selection, claim),
        test=verdict.test,
        secondary=claim.secondary,
        strength=strength(claim, verdict, shown),
        per_seed=_per_seed(selection, claim, found),
        higher_is_better=measure.higher_is_better,
        **marks._asdict(),
    )


def _marks(selection: SelectedArms, judged: JudgedClaim) -> Caveats:
    claim, measure, found, verdict, near_failures = judged
    both, interval = found if isinstance(found, Estimates) else None, verdict.decided_by
    return Caveats(
        other=both.by_the_other(interval.level, within=verdict.within)
        if both and interval and not selection.awaited and selection.looks is None
        else None,
        near_failures=near_failures if both else [],
        advice=advice(selection, claim, verdict, borrows=both is not None and isinstance(both.decisive, Moderated)),
        unlike=_unlike(selection, claim),
        chosen=None
        if isinstance(found, NotTestable) or compared(found, measure) is SHARE
        else _chosen(selection, claim, measure),
    )


def _named(selection: SelectedArms, claim: Settled, near_failures: NearFailures) -> list[str]:
    """Return the runs of the claim's arms that nearly failed, in words."""
    rows = {row.name: names_of(row.name) for row in selection.rows}
    return [
        f"seed {run.seed} of {name}"
        for name in claim.weights
        for row, runs in near_failures.items()
        if name in rows[row]
        for run in runs
    ]


def _chosen(selection: SelectedArms, claim: Settled, measure: Measure) -> str | None:
    sides = [(selection.arm(part.arm), selection.arm(part.baseline)) for part in claim.differences]
    return next((by for arm, baseline in sides if arm and baseline and (by := chosen(measure, arm, baseline))), None)


def _unlike(selection: SelectedArms, claim: Settled) -> str | None:
    sides = [(selection.arm(part.arm), selection.arm(part.baseline)) for part in claim.differences]
    found = [other for arm, baseline in sides if arm and baseline and (other := unlike(arm, baseline)) is not None]
    return ", ".join(dict.fromkeys(name for other in found for name in other.split(", "))) or None


def _shared_seeds(selection: SelectedArms, claim: Settled) -> list[int]:
    try:
        return sorted(set.intersection(*({run.seed for run in arm.finished} for arm in arms_of(selection, claim))))
    except NotTestable:
        return []


def _per_seed(selection: SelectedArms, claim: Settled, found: Evidence | Estimates) -> list[SeedDifference]:
    """Return the differences that were compared, which are in the order of the seeds; none for failures and ranks."""
    if isinstance(found, Failures | NotTestable):
        return []
    differences = found.differences if isinstance(found, Estimates) else found
    seeds = _shared_seeds(selection, claim)
    return [SeedDifference(seed=s, difference=float(d)) for s, d in zip(seeds, differences, strict=True)]


def _family(selection: SelectedArms, claim: Settled) -> str:
    """Return what the p of a claim is corrected for; empty where it is the only one of its family."""
    claims = len(selection.family(claim))
    which = " secondary" if claim.secondary else " primary" if claims < len(selection.claims) else ""
    return f"{claims}{which} claims" if claims > 1 else ""


def exploratory(selection: SelectedArms, claim: Settled) -> str | None:
    """Return why the claim is exploratory, that is, not fixed before results were known; None if it is confirmatory."""
    registered = selection.registered
    if selection.flaws:
        return "; ".join(selection.flaws)
    if registered is None:
        return "the study was never launched as one: its claims were not registered"
    if asked(claim) not in [asked(one) for one in registered.claims]:
        return "the claim came, or was changed, after the study's first launch"
    if registered.runs_already_done:
        return f"{registered.runs_already_done} of the runs had finished when the claim was registered"
    if selection.departed is not None:
        return selection.departed
    if selection.late:
        late = {run.folder.path for run in selection.late}
        return f"{how_many(len(late), 'run')} {'was' if len(late) == 1 else 'were'} given up, and finished after that"
    added = sorted({run.seed for arm in selection.arms for run in arm.runs} - set(registered.seeds))
    return f"seeds {counted(added)} were added after the first launch" if added else None
