"""Measures by which arms are compared: one number per run for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ablab.judge.runs import ArmRun
from ablab.statistics.interval import NotTestable
from ablab.statistics.resampling import Metric
from ablab.statistics.student import Floats
from ablab.tasks.own_metrics import OwnMetric, own_metrics
from ablab.tasks.score import Scale, Score
from ablab.tasks.task import OfCurve, Task
from ablab.text import have


@dataclass(frozen=True)
class Items:
    """The parts of a test set that a score is made of, such as sentences.

    `read`: sufficient statistics of one run, [items, k]; None where it has none. `score`: of their sums.
    """

    read: Callable[[ArmRun], Floats | None]
    score: Metric


@dataclass(frozen=True)
class Measure:
    """A quantity by which arms are compared. `value`: of one finished run, None where it has none.

    `digits`: after the decimal point. `progress`: the validation score that must have converged before two arms are
    compared; None where neither convergence nor a time limit matters. `of_machine`: depends on the load of the machine.
    `of_test`: read of the test set. `chosen_by`: what it chose of a run, in words, where it chose the very weights that
    it scores. `items`: those it can be computed from again, on resamples of them. `scale`: what arms must share for
    their values to be in one measure.
    """

    title: str
    unit: str
    digits: int
    higher_is_better: bool
    progress: Score | None
    value: Callable[[ArmRun], float | None]
    of_machine: bool = False
    of_test: bool = True
    chosen_by: Callable[[ArmRun], str | None] = lambda run: None
    items: Items | None = None
    scale: Scale | None = None

    def values(self, runs: Sequence[ArmRun]) -> list[float]:
        """Return the value of each run. Raises NotTestable where one has none."""
        values = [self.value(run) for run in runs]
        if None in values:
            lacking = [run for run, value in zip(runs, values, strict=True) if value is None]
            names = [run.folder.run_id if run.given is None else run.given.run for run in lacking]
            raise NotTestable(f"{', '.join(names)} {have(len(lacking))} no {self.title}")
        return [value for value in values if value is not None]


def _items(score: Score) -> Items | None:
    """Return the summands of a score in a run's evaluation, if it is one of sums."""
    if (of_sums := score.of_sums) is None:
        return None

    def read(run: ArmRun) -> Floats | None:
        found = None if run.evaluation is None else run.evaluation.items.get(score.key)
        return None if found is None else np.array(found, dtype=np.float64)

    return Items(read, of_sums)


def _measure(task: Task, name: str, score: Score) -> Measure:
    def value(run: ArmRun) -> float | None:
        return None if run.record is None else score.value(run.record, run.evaluation)

    is_cost = name in task.costs
    return Measure(
        score.title,
        score.unit,
        score.digits,
        score.higher_is_better,
        None if is_cost else task.converging(score),
        value,
        of_machine=is_cost,
        of_test=score.place in ("test", "evaluating"),
        chosen_by=lambda run: task.chosen_by(name, run.recipe),
        items=_items(score),
        scale=score.scale,
    )


@cache
def measures_of(task: Task) -> Mapping[str, Measure]:
    """Return the measures of a task by their names in experiment files, without what no single run has."""
    return {name: _measure(task, name, score) for name, score in task.measured.items()}


def measures(task: Task) -> Mapping[str, Measure]:
    """Return all measures by name, the user's own among them."""
    return {**measures_of(task), **{name: _own(task, metric) for name, metric in own_metrics().items()}}


def _own(task: Task, metric: OwnMetric) -> Measure:
    known: dict[tuple[Path, str], float | None] = {}

    def value(run: ArmRun) -> float | None:
        if run.evaluation is None:
            return None
        key = (run.folder.path, run.evaluation.evaluation_id)
        if key not in known:
            known[key] = metric.value(run.folder, run.evaluation)
        return known[key]

    progress = task.converging(task.scores[task.primary])
    return Measure(metric.title, metric.unit, metric.digits, metric.better == "higher", progress, value)


@cache
def unknown_measure(name: str) -> Measure:
    """Return the measure of a metric of which there is nothing but a claim that was registered: no run has a value."""
    return Measure(name, "", 2, True, None, lambda run: None)


def measure_of_curve(task: Task, of: OfCurve) -> Measure:
    """Return the measure that reads a run's further curve, and asks for the convergence that the primary score asks."""

    def value(run: ArmRun) -> float | None:
        return of.value(run.head_curve if of.of_heads else run.curve)

    progress = task.converging(task.scores[task.primary])
    return Measure(of.title, of.unit, of.digits, of.higher_is_better, progress, value)
