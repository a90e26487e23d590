"""What arms are compared by: one number per run for each measure."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from ablab.record import Curve, Evaluation, Point
from ablab.report.selection import Run


@dataclass(frozen=True)
class Measure:
    """`value`: of one finished run, None where it has none. `digits`: after the point. `is_quality`: whether it needs
    training to have converged, and runs that were not cut off by a clock.
    """

    title: str
    unit: str
    digits: int
    higher_is_better: bool
    is_quality: bool
    value: Callable[[Run], float | None]

    def text(self, value: float | None) -> str:
        """As every table and sentence writes it."""
        return "" if value is None else f"{value:,.{self.digits}f}"

    def signed(self, value: float | None) -> str:
        """A difference, with its sign."""
        return "" if value is None else f"{value:+,.{self.digits}f}"


def _of_evaluation(read: Callable[[Evaluation], float]) -> Callable[[Run], float | None]:
    return lambda run: None if run.evaluation is None else read(run.evaluation)


MEASURES = {
    "test_bleu": Measure("test BLEU", "BLEU", 2, True, True, _of_evaluation(lambda found: found.bleu)),
    "test_chrf": Measure("test chrF", "chrF", 2, True, True, _of_evaluation(lambda found: found.chrf)),
    "valid_bleu": Measure(
        "validation BLEU", "BLEU", 2, True, True, lambda run: run.selected.bleu if run.selected else None
    ),
    "valid_loss": Measure(
        "validation loss", "nats per token", 4, False, True, lambda run: run.selected.loss if run.selected else None
    ),
    "training_speed": Measure(
        "training speed",
        "target tokens/s",
        0,
        True,
        False,
        lambda run: run.record.cost.tokens_per_second if run.record else None,
    ),
    "decoding_speed": Measure(
        "decoding speed", "sentences/s", 0, True, False, _of_evaluation(lambda found: found.sentences_per_second)
    ),
}
"""By their names in experiment files. Shares of failures and depths are not among them: they are compared otherwise."""


def depth_measure(fall: float) -> Measure:
    """Decoder layers that are left when pruning has cost `fall` BLEU, between measured depths by straight lines."""

    def value(run: Run) -> float | None:
        return None if run.curve is None else depth_at_fall(run.curve, fall)

    return Measure(f"decoder layers at a fall of {fall:g} BLEU", "layers", 2, False, True, value)


def depth_at_fall(curve: Curve, fall: float) -> float | None:
    """The depth at which the curve of the decoder alone first lies `fall` below the whole model, from the deep end.

    The shallowest measured depth where it never does: fewer layers were not tried. None without such a curve.
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
