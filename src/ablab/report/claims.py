"""Judge claims: verdicts in numbers and in words."""

from collections.abc import Sequence
from typing import NamedTuple

from ablab.report.chosen import chosen
from ablab.report.contrasts import arms_of
from ablab.report.document import Advice, ClaimLine, OtherTest
from ablab.report.estimates import Estimates, NearFailures, borrows, estimates, nearly_failed, span
from ablab.report.evidence import Evidence
from ablab.report.failures import RANK, SHARE, compared, failures, instead
from ablab.report.format import advice_words, interval_text, number, p_words, signed
from ablab.report.metrics import Measure
from ablab.report.next_study import advice
from ablab.report.origins import unlike
from ablab.report.runs import ArmRuns
from ablab.report.selection import Selection
from ablab.statistics.interval import NotTestable
from ablab.statistics.moderated import Moderated
from ablab.statistics.verdict import Case, Expectation, Failures, Verdict, so_far, verdicts
from ablab.study.claims import EXPECTED, Settled, asked
from ablab.study.study import SAME


def judge(selection: Selection) -> list[ClaimLine]:
    """Judge the claims of the study, under one family-wise error rate for the primary and one for the secondary."""
    claimed = [(claim, _measure(selection, claim)) for claim in selection.claims]
    # Once for each measure: with many arms this takes longer than all tests.
    borrowing = dict.fromkeys(measure for claim, measure in claimed if borrows(claim, measure))
    failing = {measure: nearly_failed(selection.rows, measure) for measure in borrowing}
    found = [_evidence(selection, claim, measure, failing.get(measure, {})) for claim, measure in claimed]
    cases = [_case(*about, each) for about, each in zip(claimed, found, strict=True)]
    judged = [so_far(case) for case in cases] if selection.awaited else _by_family(selection.claims, cases)
    return [
        _line(selection, claim, measure, evidence, verdict, _named(selection, claim, failing.get(measure, {})))
        for (claim, measure), evidence, verdict in zip(claimed, found, judged, strict=True)
    ]


def _by_family(claims: Sequence[Settled], cases: Sequence[Case]) -> list[Verdict]:
    judged: dict[int, Verdict] = {}
    for secondary in (False, True):
        members = [number for number, claim in enumerate(claims) if claim.secondary == secondary]
        judged |= zip(members, verdicts([cases[number] for number in members]), strict=True)
    return [judged[number] for number in range(len(claims))]


def _measure(selection: Selection, claim: Settled) -> Measure:
    return SHARE if claim.metric == "failures" else selection.measure_of(claim)


def _evidence(
    selection: Selection, claim: Settled, measure: Measure, near_failures: NearFailures
) -> Evidence | Estimates:
    try:
        arms = arms_of(selection, claim)
    except NotTestable as reason:
        return reason
    return _shares(*arms) if measure is SHARE else estimates(selection, claim, measure, near_failures)


def _case(claim: Settled, measure: Measure, found: Evidence | Estimates) -> Case:
    margin = 0.0 if measure is SHARE else claim.margin
    expect = _expectation(claim, measure)
    if not isinstance(found, Estimates):
        return Case(expect, margin, found)
    decisive = found.decisive
    return Case(expect, margin, decisive if isinstance(decisive, Moderated) else found.differences)


def _expectation(claim: Settled, measure: Measure) -> Expectation:
    if claim.expect == "not_worse":
        return "not_less" if measure.higher_is_better else "not_greater"
    return claim.expect


def _shares(arm: ArmRuns, baseline: ArmRuns) -> Failures | NotTestable:
    try:
        return failures(arm, baseline, higher_is_better=False)
    except NotTestable as reason:
        return reason


def _line(
    selection: Selection,
    claim: Settled,
    measure: Measure,
    found: Evidence | Estimates,
    verdict: Verdict,
    near_failures: list[str],
) -> ClaimLine:
    shown = compared(found, measure)
    unalike = _unlike(selection, claim)
    by_itself = None if isinstance(found, NotTestable) or shown is SHARE else _chosen(selection, claim, measure)
    both = found if isinstance(found, Estimates) else None
    interval = verdict.decided_by
    marks = Marks(
        other=both.by_the_other(interval.level, within=verdict.within)
        if both and interval and not selection.awaited
        else None,
        near_failures=near_failures if both else [],
        advice=advice(selection, claim, verdict),
    )
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
        words=_words(claim, (measure, shown), verdict, _family(selection, claim), marks) + _mark(unalike, by_itself),
        n=verdict.n or _shared_seeds(selection, claim),
        difference=verdict.difference,
        interval=span(interval) if interval else None,
        simultaneous=span(verdict.simultaneous) if verdict.simultaneous else None,
        p=verdict.p,
        corrected=verdict.corrected,
        detectable=verdict.detectable,
        reason=verdict.reason,
        exploratory=_exploratory(selection, claim),
        unlike=unalike,
        test=verdict.test,
        secondary=claim.secondary,
        strength=_strength(claim, verdict, shown),
        chosen=by_itself,
        **marks._asdict(),
    )


def _strength(claim: Settled, verdict: Verdict, shown: Measure) -> str | None:
    """Return whether a supported difference exceeds its margin, in words; None without a margin, and for shares."""
    if not claim.margin or claim.expect in ("equal", "not_worse") or verdict.outcome != "supported" or shown is SHARE:
        return None
    if shown is RANK:
        return f"{'also' if verdict.large else 'not'} with the margin taken off"
    side = "above" if claim.expect == "greater" else "below"
    if not verdict.large:
        return f"{side} 0, not shown to exceed the margin"
    return "above the margin" if claim.expect == "greater" else "below 0 by more than the margin"


class Marks(NamedTuple):
    """What a reader should know beside the verdict; see `ClaimLine`."""

    other: OtherTest | None
    near_failures: list[str]
    advice: Advice | None


def _named(selection: Selection, claim: Settled, near_failures: NearFailures) -> list[str]:
    """Return the runs of the claim's arms that nearly failed, in words."""
    rows = {row.name: row.name.split(SAME) for row in selection.rows}
    return [
        f"seed {run.seed} of {name}"
        for name in claim.weights
        for row, runs in near_failures.items()
        if name in rows[row]
        for run in runs
    ]


def _mark(other: str | None, by_itself: str | None) -> str:
    unlike_words = "" if other is None else f" The arms were not made alike: they differ in {other}."
    return unlike_words + ("" if by_itself is None else f" The weights were chosen by the same score: {by_itself}.")


def _chosen(selection: Selection, claim: Settled, measure: Measure) -> str | None:
    sides = [(selection.arm(part.arm), selection.arm(part.baseline)) for part in claim.differences]
    return next((by for arm, baseline in sides if arm and baseline and (by := chosen(measure, arm, baseline))), None)


def _unlike(selection: Selection, claim: Settled) -> str | None:
    sides = [(selection.arm(part.arm), selection.arm(part.baseline)) for part in claim.differences]
    found = [other for arm, baseline in sides if arm and baseline and (other := unlike(arm, baseline)) is not None]
    return ", ".join(dict.fromkeys(name for other in found for name in other.split(", "))) or None


def _shared_seeds(selection: Selection, claim: Settled) -> int:
    try:
        return len(set.intersection(*({run.seed for run in arm.finished} for arm in arms_of(selection, claim))))
    except NotTestable:
        return 0


def _family(selection: Selection, claim: Settled) -> str:
    """Return what the p of a claim is corrected for; empty where it is the only one of its family."""
    claims = len(selection.family(claim))
    which = " secondary" if claim.secondary else " primary" if claims < len(selection.claims) else ""
    return f"{claims}{which} claims" if claims > 1 else ""


def _words(claim: Settled, of: tuple[Measure, Measure], verdict: Verdict, family: str, marks: Marks) -> str:
    """Return a sentence that can stand alone. `of`: the measure that was claimed, and the one that was compared."""
    measure, shown = of
    margin = f" (margin {number(claim.margin, measure.digits)})" if claim.margin else ""
    claimed = f"{claim.arm} {EXPECTED[claim.expect]} {claim.baseline} in {measure.title}{margin}"
    if verdict.reason is not None:
        return f"{claimed}: {verdict.outcome}. {verdict.reason}."
    strength = _strength(claim, verdict, shown)
    outcome = verdict.outcome if strength is None else f"{verdict.outcome}, {strength}"
    difference = f"{signed(verdict.difference, shown.digits)} {shown.unit}".rstrip()
    is_ = "so far is" if verdict.outcome == "provisional" else "is"
    sentence = f"{claimed}: {outcome}. {instead(measure, shown)}The difference {is_} {difference}"
    if (interval := verdict.decided_by) is not None:
        sentence += f", {100 * interval.level:.4g} % interval {interval_text(span(interval), shown.digits)}"
    of_what = " of no difference" if verdict.outcome == "equivalent" else ""
    corrected = "" if verdict.corrected is None else f", {p_words(verdict.corrected, of_what)}"
    several = f" corrected for {family}" if family and corrected else ""
    seeds = "runs an arm" if verdict.interval is None else "seeds"
    return f"{sentence}{corrected}{several}, {verdict.n} {seeds}.{_marked(claim, marks, verdict, shown)}"


def _marked(claim: Settled, marks: Marks, verdict: Verdict, shown: Measure) -> str:
    sentences = []
    if marks.other is not None:
        interval = interval_text(marks.other.interval, shown.digits)
        p = "" if marks.other.p is None else f", uncorrected {p_words(marks.other.p)}"
        sentences.append(f"This is the {verdict.test}; the {marks.other.test} alone gives {interval}{p}.")
    if marks.advice is not None:
        sentences.append(f"{advice_words(marks.advice, claim.expect).capitalize()}.")
    if marks.near_failures:
        sentences.append(f"Nearly failed: {', '.join(marks.near_failures)}.")
    return "".join(f" {sentence}" for sentence in sentences)


def _exploratory(selection: Selection, claim: Settled) -> str | None:
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
        return f"{len(selection.late)} runs were given up, and finished after that"
    added = sorted({run.seed for arm in selection.arms for run in arm.runs} - set(registered.seeds))
    return f"seeds {_listed(added)} were added after the first launch" if added else None


def _listed(values: Sequence[int]) -> str:
    return ", ".join(str(value) for value in values)
