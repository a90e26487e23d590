"""Measures by which arms are compared: one number per run for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from ablab.judge.runs import ArmRun
from ablab.statistics.interval import NotTestable
from ablab.statistics.sentences import Metric, corpus_bleu
from ablab.statistics.student import Floats
from ablab.store.own_metrics import OwnMetric, own_metrics
from ablab.store.records import Curve, Point
from ablab.store.scores import COSTS, MONITORED, SCORES, Scale, Score
from ablab.transformer.pruning.plot import remaining


@dataclass(frozen=True)
class Progress:
    """A validation curve that shows whether training has converged. `key`: its name in a record's validations.

    `score`: of the selected weights on the same curve. `enough`: the largest gain over the last fifth of training that
    still counts as converged, where a claim states no margin.
    """

    key: str
    score: Score
    enough: float


BLEU = Progress("bleu", SCORES["valid_bleu"], 0.5)
LOSS = Progress("loss", SCORES["valid_loss"], 0.01)
PER_CHARACTER = Progress("loss_per_character", SCORES["valid_loss_per_character"], 0.0025)
OF_UNITS: Mapping[str, Progress] = {progress.score.unit: progress for progress in (LOSS, PER_CHARACTER)}
"""The curves that must have converged, by the unit of a score; BLEU for any other."""


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

    `digits`: after the decimal point. `progress`: the curve that must have converged before two arms are compared; None
    where neither convergence nor a time limit matters. `of_machine`: depends on the load of the machine. `validated`:
    the name of a validation score, by which weights may have been selected. `items`: those it can be computed from
    again, on resamples of them. `scale`: what arms must share for their values to be in one measure.
    """

    title: str
    unit: str
    digits: int
    higher_is_better: bool
    progress: Progress | None
    value: Callable[[ArmRun], float | None]
    of_machine: bool = False
    validated: str | None = None
    items: Items | None = None
    scale: Scale | None = None

    def values(self, runs: Sequence[ArmRun]) -> list[float]:
        """Return the value of each run. Raises NotTestable where one has none."""
        values = [self.value(run) for run in runs]
        if None in values:
            lacking = [run.folder.run_id for run, value in zip(runs, values, strict=True) if value is None]
            raise NotTestable(f"{', '.join(lacking)} have no {self.title}")
        return [value for value in values if value is not None]


def _of_sentences(run: ArmRun) -> Floats | None:
    return None if run.evaluation is None else np.array(run.evaluation.statistics, dtype=np.float64)


SENTENCES = Items(_of_sentences, corpus_bleu)


def _measure(name: str, score: Score, progress: Progress | None, *, of_machine: bool = False) -> Measure:
    def value(run: ArmRun) -> float | None:
        return None if run.record is None else score.value(run.record, run.evaluation)

    return Measure(
        score.title,
        score.unit,
        score.digits,
        score.higher_is_better,
        progress,
        value,
        of_machine,
        validated=name if name in MONITORED else None,
        items=SENTENCES if name == "test_bleu" else None,
        scale=score.scale,
    )


MEASURES: Mapping[str, Measure] = {
    **{name: _measure(name, score, OF_UNITS.get(score.unit, BLEU)) for name, score in SCORES.items()},
    **{name: _measure(name, cost, None, of_machine=True) for name, cost in COSTS.items()},
}
"""Measures by their names in experiment files. Shares of failures and depths are compared in other ways."""


def measures() -> Mapping[str, Measure]:
    """Return all measures by name, the user's own among them."""
    return {**MEASURES, **{name: _own(metric) for name, metric in own_metrics().items()}}


def _own(metric: OwnMetric) -> Measure:
    known: dict[tuple[Path, str], float | None] = {}

    def value(run: ArmRun) -> float | None:
        if run.evaluation is None:
            return None
        key = (run.folder.path, run.evaluation.evaluation_id)
        if key not in known:
            known[key] = metric.value(run.folder, run.evaluation)
        return known[key]

    return Measure(metric.title, metric.unit, metric.digits, metric.better == "higher", BLEU, value)


@cache
def unknown_measure(name: str) -> Measure:
    """Return the measure of a metric of which there is nothing but a claim that was registered: no run has a value."""
    return Measure(name, "", 2, True, None, lambda run: None)


def depth_measure(fall: float) -> Measure:
    """Return the decoder layers left when pruning has cost `fall` BLEU, interpolated linearly between depths."""

    def value(run: ArmRun) -> float | None:
        return None if run.curve is None else depth_at_fall(run.curve, fall)

    return Measure(f"decoder layers at a fall of {fall:g} BLEU", "layers", 2, False, BLEU, value)


def pruned_measure(layers: int) -> Measure:
    """Return the test BLEU with `layers` decoder layers, of a pruned model or of a whole one of that depth."""

    def value(run: ArmRun) -> float | None:
        curve = [] if run.curve is None else [point for point in run.curve.points if point.curve == "decoder"]
        return next((point.bleu for point in curve if _depth(point) == layers), None)

    return Measure(f"test BLEU with {layers} decoder layers", "BLEU", 2, True, BLEU, value)


def fewer_heads_measure(heads: int) -> Measure:
    """Return the test BLEU of a model of which `heads` heads remain, by the curve that compares the arms."""

    def value(run: ArmRun) -> float | None:
        curve = [] if run.head_curve is None else run.head_curve.points
        return next((point.bleu for point in curve if remaining(point) == heads), None)

    return Measure(f"test BLEU with {heads} heads", "BLEU", 2, True, BLEU, value)


def depth_at_fall(curve: Curve, fall: float) -> float | None:
    """Return the depth at which the decoder's curve, from the deep end, first lies `fall` below the whole model.

    The shallowest measured depth where it never does, since fewer layers were not measured. None without such a curve.
    """
    points = sorted((p for p in curve.points if p.curve == "decoder"), key=_depth, reverse=True)
    if len(points) < 2:
        return None
    bound = points[0].bleu - fall
    for deeper, shallower in pairwise(points):
        if shallower.bleu < bound:
            share = (deeper.bleu - bound) / (deeper.bleu - shallower.bleu)
            return _depth(deeper) - share * (_depth(deeper) - _depth(shallower))
    return float(_depth(points[-1]))


def _depth(point: Point) -> int:
    return len(point.decoder)
