"""The metric that sees best: how far apart each one puts the arms, beside its noise from seed to seed."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from ablab.errors import UserError
from ablab.judge.document import MetricLine
from ablab.judge.estimates import level_of
from ablab.judge.evidence import are_comparable, by_scale, is_smoke, off_scale
from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.anova import one_way
from ablab.statistics.conditions import steady
from ablab.statistics.interval import NotTestable
from ablab.statistics.power import Layout, seeds_for
from ablab.statistics.student import Floats
from ablab.statistics.verdict import ALPHA


def metric_lines(selection: SelectedArms) -> list[MetricLine]:
    """Return a line per score of quality, all over the same arms, the best first.

    Empty without two such arms or two such scores, between which to choose, and of smoke runs.
    """
    arms = _whole(selection)
    if any(is_smoke(run) for arm in arms for run in arm.finished):
        return []
    names = _needed(selection, arms)
    lines = [line for name in names if (line := _line(selection, name, arms)) is not None]
    return sorted(lines, key=lambda line: -line.f) if len(lines) > 1 else []


def _scores(selection: SelectedArms) -> dict[str, Measure]:
    """Return the measures of quality, by name."""
    return {name: measure for name, measure in selection.measures.items() if not measure.of_machine}


def _needed(selection: SelectedArms, arms: Sequence[ArmRuns]) -> list[str]:
    """Return the names of the measures, without those that stand in for another that all arms have in common.

    Nats per character are nats per token in another unit, for arms of one vocabulary.
    """
    scores = _scores(selection)
    in_common = [measure for measure in scores.values() if measure.scale and off_scale(arms, measure) is None]
    spare = {measure.scale.instead for measure in in_common if measure.scale} - {""}
    return [name for name, measure in scores.items() if measure.unit not in spare or name == selection.declared]


def _line(selection: SelectedArms, name: str, arms: Sequence[ArmRuns]) -> MetricLine | None:
    """Return the line of a metric; None where a run lacks it, arms have no scale in common, or runs do not vary."""
    measure = selection.measures[name]
    if off_scale(arms, measure) is not None:
        return None
    groups = [values for arm in arms if (values := _values(arm, measure)) is not None]
    if len(groups) < max(2, len(arms)):
        return None
    try:
        found = one_way(groups)
    except NotTestable:
        return None
    return MetricLine(
        metric=name,
        title=measure.title,
        unit=measure.unit,
        digits=measure.digits,
        declared=name == selection.declared,
        arms=len(groups),
        runs=sum(group.size for group in groups),
        between=found.between,
        within=found.within,
        ratio=found.signal_to_noise,
        f=found.f,
        omega_squared=found.omega_squared,
        seeds=seeds_to_tell(
            found.between,
            found.within,
            None if selection.error == "paired" else len(groups) - 2,
            ALPHA / max(1, sum(not claim.secondary for claim in selection.as_registered.claims)),
        ),
    )


def seeds_to_tell(between: float, within: float, others: int | None, level: float = ALPHA) -> int | None:
    """Return the seeds that would show, of two arms, a difference as these have: the root of 2 times their sd.

    `others`: arms that lend their noise; None where pairs decide.
    """
    if not between > 0 or not within > 0:
        return None
    return seeds_for("greater", 2**0.5 * between, within, Layout((1.0, -1.0), others), level)


def _whole(selection: SelectedArms) -> list[ArmRuns]:
    """Return the arms of the design whose scores can be compared and vary by noise alone, of the baseline's level."""
    baseline = selection.baseline_row
    level = level_of(selection, baseline)
    of_level = [arm for arm in selection.designed if level_of(selection, arm) == level]
    alike = [arm for arm in of_level if are_comparable(arm, baseline)]
    arms = [arm for arm in alike if not arm.diverged and len(arm.finished) > 1]
    wild: set[str] = set()
    for measure in _scores(selection).values():
        for group in by_scale(arms, measure):
            found = {arm.name: _values(arm, measure) for arm in group}
            known = {arm: values for arm, values in found.items() if values is not None}
            wild |= known.keys() - steady(known).keys()
    return [arm for arm in arms if arm.name not in wild]


def _values(arm: ArmRuns, measure: Measure) -> Floats | None:
    with suppress(NotTestable, UserError):  # a metric of the user's that fails is no obstacle to a report on others
        return np.array(measure.values(arm.finished))
    return None
