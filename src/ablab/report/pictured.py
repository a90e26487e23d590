"""Curves of the arms: what training and pruning looked like, as means over seeds with their range."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ablab.report.document import LineOf, Series
from ablab.report.selection import ArmRuns, Run, Selection

Points = Iterable[tuple[float, float]]


class Kind(NamedTuple):
    """Titles of a picture and of its axes, and the points of a run; `of_curves`: of its depth-quality curve."""

    title: str
    x: str
    y: str
    read: Callable[[Run], Points]
    of_curves: bool = False


def pictured(selection: Selection) -> list[Series]:
    """Every kind of curve of which at least one arm has one."""
    found = [_series(selection, key, kind) for key, kind in KINDS.items()]
    return [series for series in found if series is not None]


def _series(selection: Selection, key: str, kind: Kind) -> Series | None:
    arms = selection.arms if kind.of_curves else selection.rows
    lines = [line for arm in arms if (line := line_of(arm, kind.read)) is not None]
    if not lines or (key == "drophead" and not any(max(line.high) for line in lines)):
        return None
    return Series(key=key, title=kind.title, x=kind.x, y=kind.y, lines=lines)


def line_of(arm: ArmRuns, read: Callable[[Run], Points]) -> LineOf | None:
    """Where every seed has a point: a mean over fewer would jump when one ends."""
    at: defaultdict[float, list[float]] = defaultdict(list)
    curves = [points for run in arm.runs if run.record is not None and (points := dict(read(run)))]
    for curve in curves:
        for x, y in curve.items():
            at[x].append(y)
    shared = sorted(x for x, values in at.items() if len(values) == len(curves))
    if not shared:
        return None
    kept = _thinned(shared)
    return LineOf(
        arm=arm.name,
        x=kept,
        mean=[round(sum(at[x]) / len(at[x]), 6) for x in kept],
        low=[round(min(at[x]), 6) for x in kept],
        high=[round(max(at[x]), 6) for x in kept],
    )


MOST_POINTS = 200
"""Of a line: more would make the page heavy and no eye richer."""


def _thinned(xs: Sequence[float]) -> list[float]:
    step = -(-len(xs) // MOST_POINTS)
    return [*xs[:-1:step], xs[-1]]


def _validation(key: str) -> Callable[[Run], Points]:
    def read(run: Run) -> Points:
        assert run.record is not None
        return [(validation["step"], validation[key]) for validation in run.record.validations]

    return read


def _metric(key: str) -> Callable[[Run], Points]:
    return lambda run: [(row["step"], row[key]) for row in run.metrics if key in row]


def _depth(name: str) -> Callable[[Run], Points]:
    def read(run: Run) -> Points:
        points = [] if run.curve is None else [point for point in run.curve.points if point.curve == name]
        return [(max(len(point.decoder), len(point.encoder) if name == "both" else 0), point.bleu) for point in points]

    return read


def _speed(run: Run) -> Points:
    points = [] if run.curve is None else [point for point in run.curve.points if point.curve == "decoder"]
    return [(len(point.decoder), point.speed_ratio) for point in points]


KINDS = {
    "valid_loss": Kind("Validation loss", "step", "nats per token", _validation("loss")),
    "valid_bleu": Kind("Validation BLEU (greedy)", "step", "BLEU", _validation("bleu")),
    "decoder_depth": Kind(
        "Test BLEU with fewer decoder layers", "decoder layers kept", "BLEU", _depth("decoder"), True
    ),
    "both_depth": Kind("Test BLEU with fewer layers in both stacks", "layers kept", "BLEU", _depth("both"), True),
    "speed": Kind(
        "Decoding speed with fewer decoder layers", "decoder layers kept", "times the whole model", _speed, True
    ),
    "grad_norm": Kind("Gradient norm", "step", "before clipping", _metric("grad_norm")),
    "drophead": Kind("Probability with which a head is dropped", "step", "probability", _metric("drophead")),
}
"""By the keys of the pictures."""
