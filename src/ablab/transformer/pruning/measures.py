"""What claims and pictures read from pruning curves: quality at a depth or a number of heads, depth at a fall."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from ablab.errors import UserError
from ablab.store.records import Curve, Point
from ablab.tasks.plan import PlannedRun
from ablab.tasks.task import Chart, OfCurve
from ablab.transformer.config.options import RulePruning, removes_heads
from ablab.transformer.pruning.heads import Heads, head_counts
from ablab.transformer.pruning.plot import HEADS, Quality, remaining
from ablab.transformer.pruning.strategies import Depths, targets

PRUNED: Mapping[str, str] = {
    "layers": "the number of decoder layers",
    "heads": "the number of heads that remain",
}
"""The keys of which a claim about the quality of pruned models needs one, and their meanings."""


def of_curve(claim: Any, quality: Quality) -> OfCurve | None:
    """Return the measure of a claim that has `fall`, `layers` or `heads`; None for any other.

    They are the decoder layers left when pruning has cost `fall`, interpolated linearly between depths; and the quality
    with so many decoder layers, of a pruned model or of a whole one of that depth, or with so many heads.
    """
    fall, layers, heads = claim.fall, claim.layers, claim.heads
    if fall is not None:
        title = f"decoder layers at a fall of {fall:g} {quality.unit}"
        return OfCurve(title, "layers", 2, False, lambda curve: depth_at_fall(curve, fall, quality.key))
    if layers is not None:
        return _quality_with(f"{layers} decoder layers", "decoder", layers, quality)
    return None if heads is None else _quality_with(f"{heads} heads", HEADS, heads, quality)


def _quality_with(what: str, name: str, count: int, quality: Quality) -> OfCurve:
    """Return the quality where `count` layers or heads remain on the curve of this name."""
    along = _along(name, lambda point: point.scores[quality.key])
    return OfCurve(
        f"{quality.title} with {what}",
        *(quality.unit, quality.digits, quality.higher_is_better),
        read=lambda curve: dict(along(curve)).get(count),
        of_heads=name == HEADS,
    )


def check_measured(claim: Any, planned: PlannedRun[Any]) -> None:
    """Raise UserError unless the planned run measures what a claim about its pruning curve is about."""
    if claim.heads is not None:
        _check_heads(claim.heads, planned)
        return
    pruning, model = planned.config.pruning, planned.config.model
    claimed = f"claims.metric={claim.metric}"
    if not isinstance(pruning, RulePruning) or removes_heads(pruning) or "decoder" not in pruning.curves:
        raise UserError(
            f"{claimed}: needs the decoder's depth-quality curve; allowed with pruning and decoder in pruning.curves"
        )
    depths = [
        at.decoder
        for at in targets("decoder", Depths(model.sizes["encoder_layers"], model.decoder_layers), pruning.depths)
    ]
    if claim.layers is not None and claim.layers not in depths:
        raise UserError(f"claims.layers={claim.layers}: measured are {', '.join(map(str, depths))} decoder layers")


def _check_heads(heads: int, planned: PlannedRun[Any]) -> None:
    pruning, model = planned.config.pruning, planned.config.model
    if not removes_heads(pruning):
        metric = next(name for name, keys in planned.task.of_curves.items() if "heads" in keys)
        raise UserError(
            f"claims.metric={metric}: needs the curve of heads; allowed with pruning=importance or pruning.what=heads"
        )
    full = Heads.all_of(model.sizes["encoder_layers"], model.decoder_layers, model.num_heads)
    counts = head_counts(full, getattr(pruning, "heads", None))
    if heads not in counts:
        raise UserError(f"claims.heads={heads}: measured are {', '.join(map(str, counts))} heads")


def depth_at_fall(curve: Curve, fall: float, key: str) -> float | None:
    """Return the depth at which the decoder's curve, from the deep end, first lies `fall` below the whole model.

    `key`: of the score, the higher the better.
    The shallowest measured depth where it never does, since fewer layers were not measured. None without such a curve.
    """
    points = sorted((point for point in curve.points if point.curve == "decoder"), key=remaining, reverse=True)
    if len(points) < 2:
        return None
    bound = points[0].scores[key] - fall
    for deeper, shallower in pairwise(points):
        above, below = deeper.scores[key], shallower.scores[key]
        if below < bound:
            depth = remaining(deeper)
            return depth - (above - bound) / (above - below) * (depth - remaining(shallower))
    return float(remaining(points[-1]))


def _speed(point: Point) -> float:
    return point.speed_ratio


def _along(name: str, read: Callable[[Point], float]) -> Callable[[Curve], list[tuple[float, float]]]:
    return lambda curve: [(remaining(point), read(point)) for point in curve.points if point.curve == name]


TIMES = "times the whole model"
HEADS_KEPT = "heads kept of the whole model"


def charts(quality: Quality) -> dict[str, Chart]:
    """Return pictures of pruning curves, by their keys."""

    def read(point: Point) -> float:
        return point.scores[quality.key]

    title, unit = f"{quality.title[:1].upper()}{quality.title[1:]}", quality.unit
    return {
        "decoder_depth": Chart(
            *(f"{title} with fewer decoder layers", "decoder layers kept", unit, "layers"), read=_along("decoder", read)
        ),
        "both_depth": Chart(
            *(f"{title} with fewer layers in both stacks", "layers kept", unit, "layers"), read=_along("both", read)
        ),
        "speed": Chart(
            *("Decoding speed with fewer decoder layers", "decoder layers kept", TIMES, "layers"),
            read=_along("decoder", _speed),
        ),
        "heads": Chart(f"{title} with fewer heads", HEADS_KEPT, unit, "heads", read=_along("heads", read)),
        "heads_speed": Chart(
            "Decoding speed with fewer heads", HEADS_KEPT, TIMES, "heads", read=_along("heads", _speed)
        ),
    }
