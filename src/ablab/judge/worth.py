"""What arms are worth in compute: by the baseline at other lengths, and by how early their curves reach its end."""

from dataclasses import replace
from functools import cache

import numpy as np

from ablab.judge.contrasts import shared_scores
from ablab.judge.document import WorthLine
from ablab.judge.estimates import LEVEL, borrowed, by_both
from ablab.judge.evidence import are_comparable, observed, pairs
from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.interval import NotTestable
from ablab.statistics.verdict import Failures
from ablab.statistics.worth import LONGEST, SHORTEST, Worth, as_good_from, worth
from ablab.study.study import names_of
from ablab.tasks.score import Score


def worth_lines(selection: SelectedArms) -> list[WorthLine]:
    """Return a line for each arm but the baseline and its other lengths, if anything is known of what it is worth."""
    pairs = ((arm, selection.baseline_of(arm)) for arm in selection.designed)
    lines = (_line(selection, arm, baseline) for arm, baseline in pairs if arm is not baseline)
    return [line for line in lines if line is not None]


def _line(selection: SelectedArms, arm: ArmRuns, baseline: ArmRuns) -> WorthLine | None:
    if arm.diverged or baseline.diverged or not are_comparable(arm, baseline, selection.measure):
        return None
    fitted, refused = _fitted(selection, arm, baseline)
    at_least = _at_least(selection, arm, baseline)
    if fitted is None and refused is None and at_least is None:
        return None
    factor = None if fitted is None or fitted.saturated else fitted.factor
    return WorthLine(
        arm=arm.name,
        baseline=baseline.name,
        factor=None if factor is None else _trained(factor),
        beyond=factor is not None and factor != _trained(factor),
        low=None if fitted is None else _trained(fitted.low) if fitted.low >= SHORTEST else 0.0,
        high=None if fitted is None or fitted.high > LONGEST else _trained(fitted.high),
        saturated=fitted is not None and fitted.saturated,
        is_loss=fitted is not None and fitted.is_loss,
        refused=refused,
        at_least=at_least,
        n=len({run.seed for run in arm.finished} & {run.seed for run in baseline.finished}),
    )


def _trained(factor: float) -> float:
    """Return the nearest factor among the lengths that the baseline is trained at: of others its scores say nothing."""
    return min(max(factor, SHORTEST), LONGEST)


def _fitted(selection: SelectedArms, arm: ArmRuns, baseline: ArmRuns) -> tuple[Worth | None, str | None]:
    """Return what the baseline at other lengths says, or why it says nothing; neither where it has none."""
    if selection.lengths is None or selection.lengths.baseline not in names_of(baseline.name):
        return None, None
    found = [selection.arm(one.name) for one in selection.lengths.arms]
    arms = [arm, baseline, *(one for one in found if one is not None)]
    if len(arms) < 4 or any(one.diverged for one in arms):
        return None, "runs of the baseline at other lengths are missing or diverged"
    measure = selection.measure
    try:
        ours, theirs, half, double = shared_scores(arms, measure)
        lent = borrowed(selection, arms, measure)
        return worth(
            *(ours, theirs, half, double, lent),
            higher_is_better=measure.higher_is_better,
            paired=selection.error != "moderated",
            level=LEVEL,
        ), None
    except NotTestable as reason:
        return None, str(reason)


def _at_least(selection: SelectedArms, arm: ArmRuns, baseline: ArmRuns) -> float | None:
    """Return the baseline's steps over those from which on an arm's curve is shown to be better than its end.

    The arm's schedule had not ended there, so that it is a lower bound. None where that is not shown before the end, or
    where the arm is not shown to be better in the measure itself, for which the curve stands in.
    """
    measure = selection.measure
    if (progress := measure.progress) is None or not _is_better(selection, arm, baseline):
        return None
    both = pairs(arm, baseline)
    ours, theirs = ([_curve(run, progress) for run in runs] for runs in (both.arm, both.baseline))
    steps = sorted(set.intersection(*map(set, ours)))
    if not steps or not all(theirs):
        return None
    place = as_good_from(
        [[curve[step] for curve in ours] for step in steps],
        [curve[max(curve)] for curve in theirs],
        borrowed(selection, (arm, baseline), _at_the_end(measure, progress)),
        paired=selection.error != "moderated",
        level=LEVEL,
    )
    factor = 0.0 if place is None else float(np.mean([max(curve) for curve in theirs])) / steps[place]
    return factor if factor > 1 else None


def _is_better(selection: SelectedArms, arm: ArmRuns, baseline: ArmRuns) -> bool:
    """Return whether the scores of an arm are shown to be better than the baseline's, by the test of the table."""
    found = observed(arm, baseline, selection.measure)
    if isinstance(found, NotTestable | Failures):
        return False
    try:
        interval = by_both(selection, (arm, baseline), (1.0, -1.0), selection.measure, found).decisive.at(LEVEL)
    except NotTestable:
        return False
    return interval.low > 0 if selection.measure.higher_is_better else interval.high < 0


@cache
def _at_the_end(measure: Measure, progress: Score) -> Measure:
    """Return the last value of a curve as a measure; one for all arms, which keep their values of each measure."""
    return replace(measure, value=lambda run: next(reversed(_curve(run, progress).values()), None))


def _curve(run: ArmRun, progress: Score) -> dict[float, float]:
    """Return the values of validations, of which the higher is the better, by their steps in order."""
    points = [] if run.record is None else run.record.validations
    sign = 1.0 if progress.higher_is_better else -1.0
    return {point["step"]: sign * point[progress.key] for point in points if progress.key in point}
