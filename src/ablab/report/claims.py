"""Judge claims: verdicts in numbers and in words."""

from collections.abc import Sequence
from typing import NamedTuple

from ablab.report.document import ClaimLine, OtherTest
from ablab.report.estimates import Estimates, estimates, nearly_failed, span
from ablab.report.evidence import Evidence, failures, measure_of, pairs
from ablab.report.format import interval_text, number, p_words, signed
from ablab.report.metrics import Measure
from ablab.report.origins import unlike
from ablab.report.selection import ArmRuns, Selection
from ablab.statistics.interval import NotTestable
from ablab.statistics.moderated import Moderated
from ablab.statistics.verdict import Case, Failures, Verdict, so_far, verdicts
from ablab.study.claims import Settled, asked
from ablab.study.study import SAME

SHARE = Measure("share of failures", "share of runs", 2, False, None, lambda _: None)


def judge(selection: Selection) -> list[ClaimLine]:
    """Judge all claims of the study together, under one family-wise error rate."""
    measures = [_measure(claim) for claim in selection.claims]
    claimed = list(zip(selection.claims, measures, strict=True))
    found = [_evidence(selection, claim, measure) for claim, measure in claimed]
    cases = [_case(*about, each) for about, each in zip(claimed, found, strict=True)]
    judged = [so_far(case) for case in cases] if selection.awaited else verdicts(cases)
    return [
        _line(selection, *about, evidence, verdict)
        for about, evidence, verdict in zip(claimed, found, judged, strict=True)
    ]


def _measure(claim: Settled) -> Measure:
    return SHARE if claim.metric == "failures" else measure_of(claim)


def _evidence(selection: Selection, claim: Settled, measure: Measure) -> Evidence | Estimates:
    arm, baseline = selection.arm(claim.arm), selection.arm(claim.baseline)
    if arm is None or baseline is None:
        gone = claim.arm if arm is None else claim.baseline
        return NotTestable(f"{gone} is no arm of the study any more")
    return _shares(arm, baseline) if measure is SHARE else estimates(selection, claim, measure)


def _case(claim: Settled, measure: Measure, found: Evidence | Estimates) -> Case:
    margin = 0.0 if measure is SHARE else claim.margin
    if not isinstance(found, Estimates):
        return Case(claim.expect, margin, found)
    decisive = found.decisive
    return Case(claim.expect, margin, decisive if isinstance(decisive, Moderated) else found.differences)


def _shares(arm: ArmRuns, baseline: ArmRuns) -> Failures | NotTestable:
    try:
        return failures(arm, baseline, higher_is_better=False)
    except NotTestable as reason:
        return reason


def _line(
    selection: Selection, claim: Settled, measure: Measure, found: Evidence | Estimates, verdict: Verdict
) -> ClaimLine:
    shown = SHARE if isinstance(found, Failures) else measure
    unalike = _unlike(selection, claim)
    both = found if isinstance(found, Estimates) else None
    interval = verdict.decided_by
    marks = Marks(
        other=both.by_the_other(interval.level, within=verdict.within)
        if both and interval and not selection.awaited
        else None,
        near_failures=_near_failures(selection, claim, measure) if both else [],
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
        words=_words(claim, (measure, shown), verdict, len(selection.claims), marks) + _mark(unalike),
        n=verdict.n or _seeds_in_both(selection, claim),
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
        **marks._asdict(),
    )


class Marks(NamedTuple):
    """What a reader should know beside the verdict; see `ClaimLine`."""

    other: OtherTest | None
    near_failures: list[str]


def _near_failures(selection: Selection, claim: Settled, measure: Measure) -> list[str]:
    found = nearly_failed(selection.rows, measure)
    rows = {row.name: row.name.split(SAME) for row in selection.rows}
    return [
        f"seed {run.seed} of {name}"
        for name in (claim.arm, claim.baseline)
        for row, runs in found.items()
        if name in rows[row]
        for run in runs
    ]


def _mark(other: str | None) -> str:
    return "" if other is None else f" The arms were not made alike: they differ in {other}."


def _unlike(selection: Selection, claim: Settled) -> str | None:
    arm, baseline = selection.arm(claim.arm), selection.arm(claim.baseline)
    return unlike(arm, baseline) if arm and baseline else None


def _seeds_in_both(selection: Selection, claim: Settled) -> int:
    arm, baseline = selection.arm(claim.arm), selection.arm(claim.baseline)
    return len(pairs(arm, baseline).arm) if arm and baseline else 0


def _words(claim: Settled, of: tuple[Measure, Measure], verdict: Verdict, claims: int, marks: Marks) -> str:
    """Return a sentence that can stand alone. `of`: the measure that was claimed, and the one that was compared."""
    measure, shown = of
    expected = {"greater": "above", "less": "below", "equal": "level with"}[claim.expect]
    margin = f" (margin {number(claim.margin, measure.digits)})" if claim.margin else ""
    claimed = f"{claim.arm} {expected} {claim.baseline} in {measure.title}{margin}"
    if verdict.reason is not None:
        return f"{claimed}: {verdict.outcome}. {verdict.reason}."
    instead = "" if shown is measure else "Runs diverged, so that arms are compared by their shares of failures. "
    difference = f"{signed(verdict.difference, shown.digits)} {shown.unit}"
    is_ = "so far is" if verdict.outcome == "provisional" else "is"
    sentence = f"{claimed}: {verdict.outcome}. {instead}The difference {is_} {difference}"
    if (interval := verdict.decided_by) is not None:
        sentence += f", {100 * interval.level:.4g} % interval {interval_text(span(interval), shown.digits)}"
    of_what = " of no difference" if verdict.outcome == "equivalent" and claim.expect != "equal" else ""
    corrected = "" if verdict.corrected is None else f", {p_words(verdict.corrected, of_what)}"
    several = f" corrected for {claims} claims" if claims > 1 and corrected else ""
    seeds = "runs an arm" if verdict.interval is None else "seeds"
    return f"{sentence}{corrected}{several}, {verdict.n} {seeds}.{_marked(marks, verdict, shown)}"


def _marked(marks: Marks, verdict: Verdict, shown: Measure) -> str:
    sentences = []
    if marks.other is not None:
        interval = interval_text(marks.other.interval, shown.digits)
        p = "" if marks.other.p is None else f", uncorrected {p_words(marks.other.p)}"
        sentences.append(f"This is the {verdict.test}; the {marks.other.test} alone gives {interval}{p}.")
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
