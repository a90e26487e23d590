"""Measures by which arms are compared: one number per run for each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ablab.report.selection import Run
from ablab.statistics.interval import NotTestable
from ablab.store.records import Curve, Evaluation, Point


@dataclass(frozen=True)
class Progress:
    """A validation curve that shows whether training has converged. `key`: its name in a record's validations.

    `enough`: the largest gain over the last fifth of training that still counts as converged, where a claim states no
    margin.
    """

    key: str
    title: str
    unit: str
    digits: int
    higher_is_better: bool
    enough: float


BLEU = Progress("bleu", "validation BLEU", "BLEU", 2, True, 0.5)
LOSS = Progress("loss", "validation loss", "nats per token", 4, False, 0.01)


@dataclass(frozen=True)
class Measure:
    """A quantity by which arms are compared. `value`: of one finished run, None where it has none.

    `digits`: after the decimal point. `progress`: the curve that must have converged before two arms are compared; None
    where neither convergence nor a time limit matters. `of_machine`: depends on the load of the machine. `validated`:
    the name of a validation score, by which weights may have been selected.
    """

    title: str
    unit: str
    digits: int
    higher_is_better: bool
    progress: Progress | None
    value: Callable[[Run], float | None]
    of_machine: bool = False
    validated: str | None = None

    def values(self, runs: Sequence[Run]) -> list[float]:
        """Return the value of each run. Raises NotTestable where one has none."""
        values = [self.value(run) for run in runs]
        if None in values:
            lacking = [run.folder.run_id for run, value in zip(runs, values, strict=True) if value is None]
            raise NotTestable(f"{', '.join(lacking)} have no {self.title}")
        return [value for value in values if value is not None]


def _of_evaluation(read: Callable[[Evaluation], float]) -> Callable[[Run], float | None]:
    return lambda run: None if run.evaluation is None else read(run.evaluation)


MEASURES = {
    "test_bleu": Measure("test BLEU", "BLEU", 2, True, BLEU, _of_evaluation(lambda found: found.bleu)),
    "test_chrf": Measure("test chrF", "chrF", 2, True, BLEU, _of_evaluation(lambda found: found.chrf)),
    "valid_bleu": Measure(
        "validation BLEU",
        "BLEU",
        2,
        True,
        BLEU,
        lambda run: run.selected.bleu if run.selected else None,
        validated="valid_bleu",
    ),
    "valid_loss": Measure(
        "validation loss",
        "nats per token",
        4,
        False,
        LOSS,
        lambda run: run.selected.loss if run.selected else None,
        validated="valid_loss",
    ),
    "training_speed": Measure(
        "training speed",
        "target tokens/s",
        0,
        True,
        None,
        lambda run: run.record.cost.tokens_per_second if run.record else None,
        of_machine=True,
    ),
    "memory": Measure(
        "peak memory of training",
        "MiB",
        0,
        False,
        None,
        lambda run: run.record.cost.peak_memory_bytes / 2**20 if run.record else None,
        of_machine=True,
    ),
    "decoding_speed": Measure(
        "decoding speed",
        "sentences/s",
        0,
        True,
        None,
        _of_evaluation(lambda found: found.sentences_per_second),
        of_machine=True,
    ),
}
"""Measures by their names in experiment files. Shares of failures and depths are compared in other ways."""


def depth_measure(fall: float) -> Measure:
    """Return the decoder layers left when pruning has cost `fall` BLEU, interpolated linearly between depths."""

    def value(run: Run) -> float | None:
        return None if run.curve is None else depth_at_fall(run.curve, fall)

    return Measure(f"decoder layers at a fall of {fall:g} BLEU", "layers", 2, False, BLEU, value)


def pruned_measure(layers: int) -> Measure:
    """Return the test BLEU with `layers` decoder layers, of a pruned model or of a whole one of that depth."""

    def value(run: Run) -> float | None:
        curve = [] if run.curve is None else [point for point in run.curve.points if point.curve == "decoder"]
        return next((point.bleu for point in curve if _depth(point) == layers), None)

    return Measure(f"test BLEU with {layers} decoder layers", "BLEU", 2, True, BLEU, value)


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
