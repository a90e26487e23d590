"""Drift of the baseline over a study: whether its scores and times follow the order in which the runs ran.

Runs of a study alternate between its arms, so that what changes in a machine falls on all of them. Where it did change,
costs of arms that ran at other times than the baseline say nothing of these arms.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from ablab.judge.document import DriftLine
from ablab.judge.lines import Span
from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.interval import NotTestable
from ablab.statistics.trend import Trend, trend

ERROR = 0.05
"""Share of reports that find a drift where there is none, over all scores and baselines that they test."""

TIME = Measure(
    "time of a run", "s", 1, False, None, lambda run: run.record.cost.seconds if run.record else None, of_machine=True
)
"""What is tested beside the scores, of runs of any task."""


def drifts(selection: SelectedArms) -> list[DriftLine]:
    """Test the baselines of a selection by its metric, by the costs that claims are about, and by the time of a run."""
    if selection.awaited:  # as many looks would be as many tests
        return []
    places = places_of(selection)
    found = [
        (baseline, measure, tested)
        for baseline in selection.baseline_rows
        for measure in _measures(selection)
        if (tested := _tested(baseline, measure, places)) is not None
    ]
    return [_line(arm, measure, tested, len(found)) for arm, measure, tested in found]


def _measures(selection: SelectedArms) -> list[Measure]:
    claimed = [measure for claim in selection.claims if (measure := selection.measure_of(claim)).of_machine]
    return list({measure.title: measure for measure in (selection.measure, *claimed, TIME)}.values())


def places_of(selection: SelectedArms) -> Mapping[Path, float]:
    """Return the place of each run that has ended in the order in which they began, from 0; equal ones share theirs."""
    began = {run.folder.path: _began(run) for arm in selection.rows for run in arm.runs if run.record is not None}
    times = np.array(list(began.values()))
    return {path: float((times < at).sum() + ((times == at).sum() - 1) / 2) for path, at in began.items()}


def _began(run: ArmRun) -> float:
    """Return when a run began, in seconds, had it never been interrupted."""
    assert run.record is not None
    return datetime.fromisoformat(run.record.ended.replace("Z", "+00:00")).timestamp() - run.record.cost.seconds


def _tested(arm: ArmRuns, measure: Measure, places: Mapping[Path, float]) -> Trend | None:
    """Return the trend of an arm's scores, of costs that of their logarithms; None where there is nothing to test."""
    there = [run for run in arm.finished if run.folder.path in places and measure.value(run) is not None]
    values = measure.values(there)
    if measure.of_machine:
        if not all(value > 0 for value in values):
            return None
        values = list(map(math.log, values))
    try:
        return trend([places[run.folder.path] for run in there], values, max(places.values(), default=0.0))
    except NotTestable:
        return None


def _line(arm: ArmRuns, measure: Measure, found: Trend, tests: int) -> DriftLine:
    def shown(change: float) -> float:
        return math.expm1(min(change, 700.0)) if measure.of_machine else change

    interval = found.interval
    return DriftLine(
        arm=arm.name,
        title=measure.title,
        unit=measure.unit,
        digits=measure.digits,
        is_share=measure.of_machine,
        n=found.n,
        change=shown(found.change),
        interval=Span(low=shown(interval.low), high=shown(interval.high), level=interval.level, method=interval.method),
        p=found.p,
        tests=tests,
        found=found.p <= ERROR / tests,
    )


def check_ran_together(selection: SelectedArms, arms: Sequence[ArmRuns], measure: Measure) -> None:
    """Raise NotTestable where a cost of the baseline drifted, and arms that are compared ran at other times.

    One round of the arms more or less is within what alternating leaves.
    """
    if not measure.of_machine:
        return
    drifted = next((line for line in drifts(selection) if line.found and line.title == measure.title), None)
    if drifted is None:
        return
    places = places_of(selection)
    middles = {arm.name: _middle(arm, places) for arm in arms if arm.finished}
    first, last = (order(middles, key=lambda name: middles[name]) for order in (min, max))
    if middles[last] - middles[first] > len(selection.rows):
        raise NotTestable(
            f"{drifted.title} of {drifted.arm} changed by {drifted.change:+.0%} while the study ran, and most runs of "
            f"{last} came after those of {first}"
        )


def _middle(arm: ArmRuns, places: Mapping[Path, float]) -> float:
    return float(np.mean([places[run.folder.path] for run in arm.finished if run.folder.path in places]))
