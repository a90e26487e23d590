"""What arms are worth in compute: by the baseline at other lengths, and by how early their curves reach its end."""

import math

import numpy as np

from ablab.judge.contrasts import shared_scores
from ablab.judge.document import WorthLine
from ablab.judge.estimates import LEVEL, borrowed
from ablab.judge.evidence import are_comparable
from ablab.judge.lines import Span
from ablab.judge.metrics import Progress
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.interval import NotTestable
from ablab.statistics.paired import of_differences
from ablab.statistics.student import Floats
from ablab.statistics.worth import Worth, worth

BOUND = "t over seeds, of logarithms"


def worth_lines(selection: SelectedArms) -> list[WorthLine]:
    """Return a line for each arm but the baseline and its other lengths, if anything is known of what it is worth."""
    pairs = ((arm, selection.baseline_of(arm)) for arm in selection.designed)
    lines = (_line(selection, arm, baseline) for arm, baseline in pairs if arm is not baseline)
    return [line for line in lines if line is not None]


def _line(selection: SelectedArms, arm: ArmRuns, baseline: ArmRuns) -> WorthLine | None:
    if arm.diverged or baseline.diverged or not are_comparable(arm, baseline, selection.measure):
        return None
    fitted, refused = _fitted(selection, arm, baseline)
    reached = _reached(selection, arm, baseline)
    if fitted is None and refused is None and reached is None:
        return None
    bound, interval = reached or (None, None)
    return WorthLine(
        arm=arm.name,
        baseline=baseline.name,
        factor=None if fitted is None or fitted.saturated else fitted.factor,
        low=None if fitted is None else fitted.low,
        high=None if fitted is None or math.isinf(fitted.high) else fitted.high,
        saturated=fitted is not None and fitted.saturated,
        refused=refused,
        bound=bound,
        bound_interval=interval,
        n=len({run.seed for run in arm.finished} & {run.seed for run in baseline.finished}),
    )


def _fitted(selection: SelectedArms, arm: ArmRuns, baseline: ArmRuns) -> tuple[Worth | None, str | None]:
    """Return what the baseline at other lengths says, or why it says nothing; neither where it has none."""
    if selection.lengths is None:
        return None, None
    found = [selection.arm(one.name) for one in selection.lengths.arms]
    arms = [arm, baseline, *(one for one in found if one is not None)]
    if len(arms) < 4 or any(one.diverged for one in arms):
        return None, "runs of the baseline at other lengths are missing or diverged"
    measure = selection.measure
    try:
        ours, theirs, half, double = shared_scores(arms, measure)
        lent = borrowed(selection, arms, measure)
        found_worth = worth(ours, theirs, half, double, lent, higher_is_better=measure.higher_is_better, level=LEVEL)
        return found_worth, None
    except NotTestable as reason:
        return None, str(reason)


def _reached(selection: SelectedArms, arm: ArmRuns, baseline: ArmRuns) -> tuple[float, Span | None] | None:
    """Return the baseline's steps over those at which an arm is first as good as its end, and the interval over seeds.

    The arm's schedule had not ended there, so that it is a lower bound. None where it is not as good under each seed.
    """
    if (progress := selection.measure.progress) is None:
        return None
    theirs = {run.seed: run for run in baseline.finished}
    logs = [_log_factor(run, theirs[run.seed], progress) for run in arm.finished if run.seed in theirs]
    known = [found for found in logs if found is not None]
    if not known or len(known) < len(logs):
        return None
    mean = math.exp(float(np.mean(known)))
    try:
        found = of_differences(known).at(LEVEL)
    except NotTestable:
        return mean, None
    return mean, Span(low=math.exp(found.low), high=math.exp(found.high), level=LEVEL, method=BOUND)


def _log_factor(run: ArmRun, other: ArmRun, progress: Progress) -> float | None:
    """Return the logarithm of that ratio of steps for one seed; between two validations the curve is a straight line.

    None where a curve is missing, or does not come to what is wanted.
    """
    ours, theirs = (_curve(one, progress) for one in (run, other))
    if ours is None or theirs is None:
        return None
    steps, values, wanted = *ours, theirs[1][-1]
    there = np.flatnonzero(values >= wanted)
    if not len(there):
        return None
    step, place = float(steps[there[0]]), int(there[0])
    if place:
        gained, ran = values[place] - values[place - 1], steps[place] - steps[place - 1]
        step -= float((values[place] - wanted) / gained * ran)
    return math.log(float(theirs[0][-1]) / step)


def _curve(run: ArmRun, progress: Progress) -> tuple[Floats, Floats] | None:
    """Return steps and values, of which the higher is the better, [validations] each."""
    sign = 1.0 if progress.score.higher_is_better else -1.0
    points = [] if run.record is None else run.record.validations
    kept = [(point["step"], sign * point[progress.key]) for point in points if progress.key in point]
    return None if not kept else (np.array([step for step, _ in kept]), np.array([value for _, value in kept]))
