"""What a gain is worth in compute: the factor by which the baseline would need more of it to score as well.

The baseline is trained at half, once and twice its length. Its score is taken to be linear in the logarithm of the
length, score = a + s ln(length), so that a gain g is worth the factor exp(g / s).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.interval import NotTestable
from ablab.statistics.moderated import Moderated, moderated_contrast

LN4 = 2 * math.log(2)
"""Logarithm of twice the length over half of it."""

FURTHEST = math.log(64)
"""Logarithm of the largest factor that is looked at: of an interval that reaches it, the end is not said."""

FIRST, STEPS = 0.02, 24
"""The first step, of logarithms, and the number of growing ones in which an end of the interval is looked for."""


@dataclass(frozen=True)
class Worth:
    """A factor of compute, with its interval. `factor`: None where the baseline does not gain from compute at all.

    `low`: 0 and `high`: infinity where the interval has no end. `saturated`: it is not shown that the baseline gains
    from compute, so that no gain has an upper end. `bent`: its three lengths do not lie on a line, at the same level.
    """

    factor: float | None
    low: float
    high: float
    saturated: bool
    bent: bool


def contrast(factor: float) -> tuple[float, float, float, float]:
    """Return the weights of arm, baseline, double and half whose sum is the gain over the baseline at this factor."""
    slope = math.log(factor) / LN4
    return 1.0, -1.0, -slope, slope


def worth(
    arm: npt.ArrayLike,
    baseline: npt.ArrayLike,
    half: npt.ArrayLike,
    double: npt.ArrayLike,
    others: Sequence[npt.ArrayLike] = (),
    *,
    higher_is_better: bool = True,
    level: float = 0.95,
) -> Worth:
    """Return what an arm's gain is worth, [seeds] each of the same seeds; `others`: arms that lend their noise.

    The interval holds the factors at which the arm does not differ from the baseline of so much compute by a two-sided
    moderated t test. With one variance for all arms this is Fieller's interval of a ratio (Fieller 1954, section 3).
    Where the baseline has saturated these factors may lie on both sides of 1; those on the side of the gain count.
    Raises NotTestable as `moderated_contrast` does.
    """
    sign = 1.0 if higher_is_better else -1.0
    arms = [sign * np.asarray(scores, dtype=np.float64) for scores in (arm, baseline, double, half)]
    lent = [sign * np.asarray(scores, dtype=np.float64) for scores in others]
    gain = float(arms[0].mean() - arms[1].mean())
    slope = float(arms[2].mean() - arms[3].mean()) / LN4
    with_slope = moderated_contrast([arms[2], arms[3]], [1.0, -1.0], [arms[0], arms[1], *lent])
    saturated = with_slope.at(level).low <= 0
    bend = moderated_contrast([arms[3], arms[1], arms[2]], [1.0, -2.0, 1.0], [arms[0], *lent])

    def accepted(log_factor: float) -> float:
        """Above 0 where the factor is in the interval."""
        try:
            found = moderated_contrast(arms, contrast(math.exp(log_factor)), lent)
        except NotTestable:
            return 1.0 if log_factor else -1.0
        return _bound(found, level) - abs(found.difference)

    inside = _component(accepted, gain, slope if slope > 0 and not saturated else None)
    factor = math.exp(min(gain / slope, 700.0)) if slope > 0 else None
    return Worth(factor, *inside, saturated, bend.p < 1 - level)


def _bound(found: Moderated, level: float) -> float:
    return student.quantile((1 + level) / 2, found.df) * found.standard_error


def _component(accepted: Callable[[float], float], gain: float, slope: float | None) -> tuple[float, float]:
    """Return the ends, as factors, of the accepted factors around the estimate; without a slope, of all above 1 or
    below it that are accepted, as the gain says.
    """
    start = 0.0 if slope is None else float(np.clip(gain / slope, -FURTHEST, FURTHEST))
    if slope is None and accepted(0.0) <= 0:
        # The gain is real, and no amount of compute is shown to give it: only its near end is known.
        side = math.copysign(1.0, gain)
        near = _crossing(accepted, 0.0, side, wanted=True)
        return (math.exp(near), math.inf) if side > 0 else (0.0, math.exp(near))
    low, high = (_crossing(accepted, start, side, wanted=False) for side in (-1.0, 1.0))
    return 0.0 if low <= -FURTHEST else math.exp(low), math.inf if high >= FURTHEST else math.exp(high)


def _crossing(accepted: Callable[[float], float], start: float, side: float, *, wanted: bool) -> float:
    """Return the nearest place from the start on where acceptance becomes as wanted; the furthest if it never does."""
    from scipy.optimize import brentq  # type: ignore[import-untyped, unused-ignore]

    end, before, was = side * FURTHEST, start, accepted(start)
    for place in map(float, start + side * np.geomspace(FIRST, abs(end - start) + FIRST, STEPS)):
        if ((now := accepted(place)) > 0) == wanted:
            return float(brentq(accepted, before, place)) if was * now < 0 else before
        before, was = place, now
    return end
