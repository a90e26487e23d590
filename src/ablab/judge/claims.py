"""Judge claims: what the runs show of each, and its verdict."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import takewhile
from typing import TypeVar

from ablab.judge.contrasts import arms_of, evidence_of
from ablab.judge.ends import given_up_words
from ablab.judge.estimates import Estimates, beats, borrows, conditions, estimates, nearly_failed
from ablab.judge.evidence import Evidence, chosen
from ablab.judge.failures import SHARE, compared, failures
from ablab.judge.families import claim_key
from ablab.judge.lines import ClaimLine, FollowedLine, LookLine, SeedDifference, Sign, Span, UnionLine
from ablab.judge.metrics import Measure
from ablab.judge.origins import unlike
from ablab.judge.prospects import advice, detectable
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.interval import NotTestable
from ablab.statistics.looks import Looks
from ablab.statistics.moderated import Moderated
from ablab.statistics.sequential import Followed, Watched, follow_watched
from ablab.statistics.verdict import Case, Expectation, Failures, Outcome, Verdict, so_far, verdicts
from ablab.study.claims import Settled
from ablab.study.study import names_of
from ablab.text import counted, digits_apart, how_many

One = TypeVar("One")
Judged = TypeVar("Judged")


def judge(selection: SelectedArms) -> list[ClaimLine]:
    """Judge the claims of the study, under one family-wise error rate for the primary and one for the secondary.

    Those that came after the registration are judged apart, and cannot change what was registered.
    """
    lines = {False: iter(_judge(selection.as_registered)), True: iter(_judge(selection.later))}
    return [next(lines[selection.is_later(claim)]) for claim in selection.claims]


def _judge(selection: SelectedArms) -> list[ClaimLine]:
    if selection.looks is not None:
        return _judge_looks(selection, selection.looks)
    reading = _Reading(selection)
    found = [reading.evidence(claim) for claim in selection.claims]
    cases = [_case(selection, claim, one) for claim, one in zip(selection.claims, found, strict=True)]
    judged = [so_far(case) for case in cases] if selection.awaited else _by_family(selection.claims, cases, verdicts)
    lines = [reading.line(*about) for about in zip(selection.claims, found, judged, strict=True)]
    return lines if selection.awaited or not selection.sharing else _with_union(selection, cases, lines)


def _with_union(selection: SelectedArms, cases: Sequence[Case], lines: Sequence[ClaimLine]) -> list[ClaimLine]:
    """Add what registered claims are as one family with those that other studies registered on the same runs."""
    own = [*zip(selection.claims, cases, strict=True)]
    known = {claim_key(selection, claim) for claim in selection.claims}
    others: dict[str, tuple[Settled, Case]] = {}
    for other in selection.sharing:
        reading, is_looked_at = _Reading(other), bool(other.registered and other.registered.looks)
        for claim in other.claims:
            if (key := claim_key(other, claim)) not in known:
                # What is looked at after each seed has no p for one look: it keeps its place alone.
                found = NotTestable("looked at after each seed") if is_looked_at else reading.evidence(claim)
                others[key] = claim, _case(other, claim, found)
    if not others:
        return list(lines)
    claims, together = zip(*own, *others.values(), strict=True)
    judged = _by_family(claims, together, verdicts)[: len(own)]
    return [
        line.model_copy(update={"union": _union(verdict, sum(one.secondary == line.secondary for one in claims))})
        for line, verdict in zip(lines, judged, strict=True)
    ]


def _union(verdict: Verdict, claims: int) -> UnionLine | None:
    p = verdict.corrected
    return None if p is None else UnionLine(claims=claims, p=p, outcome=verdict.outcome)


def _judge_looks(selection: SelectedArms, looks: Looks) -> list[ClaimLine]:
    """Judge claims whose seeds are added until these are settled. A look sees no run of a later seed."""
    readings = cache(lambda seeds: _Reading(selection.up_to(seeds)))

    def watched(claim: Settled) -> Watched:
        measure = selection.measure_of(claim)
        expect, margin = _expectation(claim, measure), _margin(claim, measure)

        def at(seeds: int) -> Evidence:
            then = readings(seeds).selection
            return _shares(*arms_of(then, claim)) if measure is SHARE else evidence_of(then, claim, measure)

        try:
            there = _seeds_of(arms_of(selection, claim))
        except NotTestable as reason:
            return Watched.of(Case(expect, margin, reason), looks)
        return Watched(expect, margin, there, at)

    lines = []
    claims = [watched(claim) for claim in selection.claims]
    followed = _by_family(selection.claims, claims, lambda members: follow_watched(members, looks))
    for claim, one in zip(selection.claims, map(_ended, followed) if selection.ended else followed, strict=True):
        reading, verdict = readings(one.seeds), one.verdict
        # Before the first look nothing is read.
        found = NotTestable(verdict.reason) if verdict.difference is None else reading.evidence(claim)
        line = reading.line(claim, found, verdict)
        lines.append(line.model_copy(update={"followed": _followed_line(one, looks)}))
    return lines


def _seeds_of(arms: Sequence[ArmRuns]) -> int:
    """Return how many seeds have ended in all of the arms, from the first on and without one missing.

    A look needs all seeds before it: one that still trains must not be left out because others ended sooner.
    """
    ended = [{run.seed for run in arm.runs if run.has_ended} for arm in arms]
    seeds = sorted({run.seed for arm in arms for run in arm.runs})
    return sum(1 for _ in takewhile(lambda seed: all(seed in there for there in ended), seeds))


def _ended(one: Followed) -> Followed:
    """Return a claim as it is where no seed will be added any more: one that was open is inconclusive."""
    if one.state != "open":
        return one
    outcome: Outcome = "inconclusive" if one.verdict.reason is None else "not testable"
    return replace(one, verdict=replace(one.verdict, outcome=outcome))


def _followed_line(one: Followed, looks: Looks) -> FollowedLine:
    return FollowedLine(
        state=one.state,
        first=looks.first,
        last=looks.last,
        looks=[LookLine(n=look.n, difference=look.difference, interval=Span.of(look.interval)) for look in one.looks],
        chance=one.chance,
        bias=one.bias if one.state == "settled" else None,
    )


def _by_family(
    claims: Sequence[Settled], cases: Sequence[One], judge_together: Callable[[list[One]], Sequence[Judged]]
) -> list[Judged]:
    judged: dict[int, Judged] = {}
    for secondary in (False, True):
        members = [number for number, claim in enumerate(claims) if claim.secondary == secondary]
        judged |= zip(members, judge_together([cases[number] for number in members]), strict=True)
    return [judged[number] for number in range(len(claims))]


class _Reading:
    """What the runs of a selection show of its claims."""

    def __init__(self, selection: SelectedArms):
        self.selection = selection
        # Once for each measure: with many arms this takes longer than all tests.
        self._nearly_failed = cache(lambda measure: nearly_failed(selection, measure))

    def evidence(self, claim: Settled) -> Evidence | Estimates:
        """Return what decides a claim."""
        measure = self.selection.measure_of(claim)
        try:
            arms = arms_of(self.selection, claim)
        except NotTestable as reason:
            return reason
        if measure is SHARE:
            return _shares(*arms)
        return estimates(self.selection, claim, measure)

    def line(self, claim: Settled, found: Evidence | Estimates, verdict: Verdict) -> ClaimLine:
        """Return the line of a claim, without its sentences."""
        selection, measure = self.selection, self.selection.measure_of(claim)
        shown, interval = compared(found, measure), verdict.decided_by
        ends = [] if interval is None else [interval.low, interval.high]
        both = found if isinstance(found, Estimates) else None
        moderated = both.decisive if both is not None and isinstance(both.decisive, Moderated) else None
        sides = [(selection.arm(part.arm), selection.arm(part.baseline)) for part in claim.differences]
        compare = [(arm, baseline) for arm, baseline in sides if arm and baseline]
        is_whole = not selection.awaited and selection.looks is None
        is_choice = not isinstance(found, NotTestable) and shown is not SHARE
        return ClaimLine(
            arm=claim.arm,
            baseline=claim.baseline,
            metric=claim.metric,
            about=measure.title,
            title=shown.title,
            unit=shown.unit,
            digits=digits_apart(shown.digits, ends, [0.0, _margin(claim, measure)]),
            expect=claim.expect,
            margin=claim.margin,
            published=claim.published,
            source=claim.source,
            outcome=verdict.outcome,
            words="",  # and what is claimed: the report says both
            n=verdict.n or len(_shared_seeds(selection, claim)),
            uneven=isinstance(found, Failures) and any(len(arm.runs) != len(other.runs) for arm, other in compare),
            difference=verdict.difference,
            interval=Span.of(interval) if interval else None,
            simultaneous=Span.of(verdict.simultaneous) if verdict.simultaneous else None,
            p=verdict.p,
            corrected=verdict.corrected,
            detectable=detectable(claim, verdict, moderated),
            reason=verdict.reason,
            exploratory=exploratory(selection, claim),
            unlike=_unlike(compare),
            test=verdict.test,
            other=both.by_the_other(interval.level, within=verdict.within) if both and interval and is_whole else None,
            near_failures=self._named(claim, measure) if both else [],
            conditions=_conditions(claim, both, verdict) if both else [],
            secondary=claim.secondary,
            later=selection.is_later(claim),
            advice=advice(selection, claim, verdict, moderated),
            different=verdict.different,
            small=verdict.small,
            large=verdict.large,
            chosen=next((by for sides in compare if (by := chosen(measure, *sides))), None) if is_choice else None,
            per_seed=_per_seed(selection, claim, found),
            higher_is_better=measure.higher_is_better,
        )

    def _named(self, claim: Settled, measure: Measure) -> list[str]:
        """Return the runs of the claim's arms that nearly failed, in words; none that beats the whole baseline."""
        baseline = self.selection.arm(claim.baseline)
        failing = self._nearly_failed(measure) if borrows(claim, measure) else {}
        return [
            f"seed {run.seed} of {name}"
            for name in claim.weights
            for row, run in failing.items()
            if name in names_of(row)
            if baseline is None or name == claim.baseline or not beats(run, baseline, measure)
        ]


def _case(selection: SelectedArms, claim: Settled, found: Evidence | Estimates) -> Case:
    measure = selection.measure_of(claim)
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


def _conditions(claim: Settled, found: Estimates, verdict: Verdict) -> list[Sign]:
    level = 0.95 if verdict.interval is None else verdict.interval.level
    return list(conditions(found, list(claim.weights), level))


def _shares(arm: ArmRuns, baseline: ArmRuns) -> Failures | NotTestable:
    try:
        return failures(arm, baseline, higher_is_better=False)
    except NotTestable as reason:
        return reason


def _unlike(sides: Sequence[tuple[ArmRuns, ArmRuns]]) -> str | None:
    found = [other for arm, baseline in sides if (other := unlike(arm, baseline)) is not None]
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


def exploratory(selection: SelectedArms, claim: Settled) -> str | None:
    """Return why the claim is exploratory, that is, not fixed before results were known; None if it is confirmatory."""
    registered = selection.registered
    if selection.flaws:
        return "; ".join(selection.flaws)
    if registered is None:
        return "the study was never launched as one: its claims were not registered"
    if selection.is_later(claim):
        first = "the study's first launch" if selection.origin is None else "the claims were registered"
        return f"the claim came, or was changed, after {first}"
    if registered.runs_already_done:
        return f"{registered.runs_already_done} of the runs had finished when the claim was registered"
    if selection.departed is not None:
        return selection.departed
    if selection.late:
        late = {run.folder.path for run in selection.late}
        return f"{how_many(len(late), 'run')} {'was' if len(late) == 1 else 'were'} given up, and finished after that"
    arms = {arm.name for name in claim.weights if (arm := selection.arm(name)) is not None}
    if (given_up := given_up_words(run for run in selection.given_up if run.arm in arms)) is not None:
        return given_up
    added = sorted({run.seed for arm in selection.arms for run in arm.runs} - set(registered.seeds))
    return f"seeds {counted(added)} were added after the first launch" if added else None
