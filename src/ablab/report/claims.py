"""Judge claims: verdicts in numbers and in words."""

from collections.abc import Sequence

from ablab.report.document import ClaimLine, Span
from ablab.report.evidence import evidence, failures, measure_of, pairs
from ablab.report.format import interval_text, number, p_said, signed
from ablab.report.metrics import Measure
from ablab.report.origins import unlike
from ablab.report.selection import ArmRuns, Selection
from ablab.statistics.interval import Interval, NotTestable
from ablab.statistics.verdict import Case, Failures, Verdict, verdicts
from ablab.study.claims import Settled, asked

SHARE = Measure("share of failures", "share of runs", 2, False, None, lambda _: None)


def judge(selection: Selection) -> list[ClaimLine]:
    """Judge all claims of the study together, under one family-wise error rate."""
    measures = [_measure(claim) for claim in selection.claims]
    cases = [_case(selection, claim, measure) for claim, measure in zip(selection.claims, measures, strict=True)]
    found = zip(selection.claims, measures, cases, verdicts(cases), strict=True)
    return [_line(selection, claim, measure, case, verdict) for claim, measure, case, verdict in found]


def span(interval: Interval) -> Span:
    """Convert an interval to the document's type."""
    return Span(low=interval.low, high=interval.high, level=interval.level, method=interval.method)


def _measure(claim: Settled) -> Measure:
    return SHARE if claim.metric == "failures" else measure_of(claim)


def _case(selection: Selection, claim: Settled, measure: Measure) -> Case:
    arm, baseline = selection.arm(claim.arm), selection.arm(claim.baseline)
    if arm is None or baseline is None:
        gone = claim.arm if arm is None else claim.baseline
        return Case(claim.expect, claim.margin, NotTestable(f"{gone} is no arm of the study any more"))
    if measure is SHARE:
        return Case(claim.expect, 0.0, _shares(arm, baseline))
    return Case(claim.expect, claim.margin, evidence(arm, baseline, measure, claim.margin))


def _shares(arm: ArmRuns, baseline: ArmRuns) -> Failures | NotTestable:
    try:
        return failures(arm, baseline, higher_is_better=False)
    except NotTestable as reason:
        return reason


def _line(selection: Selection, claim: Settled, measure: Measure, case: Case, verdict: Verdict) -> ClaimLine:
    by_share = isinstance(case.evidence, Failures)
    shown = SHARE if by_share else measure
    other = _unlike(selection, claim)
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
        words=_words(claim, (measure, shown), verdict, len(selection.claims)) + _mark(other),
        n=verdict.n or _seeds_in_both(selection, claim),
        difference=verdict.difference,
        interval=span(verdict.interval) if verdict.interval else None,
        simultaneous=span(verdict.simultaneous) if verdict.simultaneous else None,
        p=verdict.p,
        corrected=verdict.corrected,
        detectable=verdict.detectable,
        reason=verdict.reason,
        exploratory=_exploratory(selection, claim),
        unlike=other,
    )


def _mark(other: str | None) -> str:
    return "" if other is None else f" The arms were not made alike: they differ in {other}."


def _unlike(selection: Selection, claim: Settled) -> str | None:
    arm, baseline = selection.arm(claim.arm), selection.arm(claim.baseline)
    return unlike(arm, baseline) if arm and baseline else None


def _seeds_in_both(selection: Selection, claim: Settled) -> int:
    arm, baseline = selection.arm(claim.arm), selection.arm(claim.baseline)
    return len(pairs(arm, baseline).arm) if arm and baseline else 0


def _words(claim: Settled, of: tuple[Measure, Measure], verdict: Verdict, claims: int) -> str:
    """Return a sentence that can stand alone. `of`: the measure that was claimed, and the one that was compared."""
    measure, shown = of
    expected = {"greater": "above", "less": "below", "equal": "level with"}[claim.expect]
    margin = f" (margin {number(claim.margin, measure.digits)})" if claim.margin else ""
    claimed = f"{claim.arm} {expected} {claim.baseline} in {measure.title}{margin}"
    if verdict.outcome == "not testable":
        return f"{claimed}: not testable. {verdict.reason}."
    instead = "" if shown is measure else "Runs diverged, so that arms are compared by their shares of failures. "
    difference = f"{signed(verdict.difference, shown.digits)} {shown.unit}"
    said = f"{claimed}: {verdict.outcome}. {instead}The difference is {difference}"
    if verdict.interval is not None:
        said += f", {100 * verdict.interval.level:.4g} % interval {interval_text(span(verdict.interval), shown.digits)}"
    of_what = " of no difference" if verdict.outcome == "equivalent" and claim.expect != "equal" else ""
    corrected = "" if verdict.corrected is None else f", {p_said(verdict.corrected, of_what)}"
    several = f" corrected for {claims} claims" if claims > 1 and corrected else ""
    seeds = "runs an arm" if verdict.interval is None else "seeds"
    return f"{said}{corrected}{several}, {verdict.n} {seeds}."


def _exploratory(selection: Selection, claim: Settled) -> str | None:
    """Return why the claim is exploratory, that is, not fixed before results were known; None if it is confirmatory."""
    registered = selection.registered
    if registered is None:
        return "the study was never launched as one: its claims were not registered"
    if asked(claim) not in [asked(one) for one in registered.claims]:
        return "the claim came, or was changed, after the study's first launch"
    if registered.runs_already_done:
        return f"{registered.runs_already_done} of the runs had finished when the claim was registered"
    if selection.departed is not None:
        return selection.departed
    added = sorted({run.seed for arm in selection.arms for run in arm.runs} - set(registered.seeds))
    return f"seeds {_listed(added)} were added after the first launch" if added else None


def _listed(values: Sequence[int]) -> str:
    return ", ".join(str(value) for value in values)
