"""What a gain is worth in compute: the factor by which the baseline would need more of it to score as well.

The baseline is trained at half, once and twice its length. In between, its score is taken to be the parabola through
these three, over the logarithm of the length: diminishing returns bend it, and a straight line would mistake that for a
gain or a loss of the arm. Beyond them it goes on as straight as from the nearer two. Without these lengths, an arm's
own curve bounds the factor, by how early it is shown to be as good as the baseline's end.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.interval import NotTestable
from ablab.statistics.moderated import Moderated, moderated_contrast
from ablab.statistics.paired import Paired, of_differences, without_rounding
from ablab.statistics.student import Floats

SHORTEST, LONGEST = 0.5, 2.0
"""Factors of compute at which the baseline is trained, beside its own."""

FURTHEST = math.log(64)
"""Logarithm of the largest factor that is looked at: of an interval that reaches it, the end is not said."""

FIRST, STEPS = 0.02, 24
"""The first step, of logarithms, and the number of growing ones in which an end of the interval is looked for."""


@dataclass(frozen=True)
class Worth:
    """A factor of compute, with its interval. `factor`: None where no length of the baseline scores as the arm does.

    `low`: 0 and `high`: infinity where the interval has no end. `saturated`: twice the compute is not shown to gain, so
    that no gain has an upper end; of an arm that is worse, half of it is not shown to lose, so there is no lower end.
    `is_loss`: the arm is worse.
    """

    factor: float | None
    low: float
    high: float
    saturated: bool
    is_loss: bool = False


def contrast(factor: float) -> tuple[float, float, float, float]:
    """Return the weights of arm, baseline, half and double whose sum is the gain over the baseline at this factor.

    From half to twice the compute it varies no more than a difference of two arms.
    """
    doublings = math.log2(factor)
    if abs(doublings) <= 1:
        half, double = doublings * (doublings - 1) / 2, doublings * (doublings + 1) / 2
    else:
        half, double = max(-doublings, 0.0), max(doublings, 0.0)
    return 1.0, half + double - 1.0, -half, -double


def worth(
    arm: npt.ArrayLike,
    baseline: npt.ArrayLike,
    half: npt.ArrayLike,
    double: npt.ArrayLike,
    others: Sequence[npt.ArrayLike] = (),
    *,
    higher_is_better: bool = True,
    paired: bool = False,
    level: float = 0.95,
) -> Worth:
    """Return what an arm's gain is worth, [seeds] each of the same seeds; `others`: arms that lend their noise, unless
    `paired`.

    The interval holds the factors around the estimate at which the arm does not differ from the baseline of so much
    compute by a two-sided t test, moderated or paired. Beyond twice the compute, with one variance for all arms, this
    is Fieller's interval of a ratio (Fieller 1954, section 3). Where the baseline has saturated these factors may lie
    on both sides of 1; those on the side of the gain count. Raises NotTestable as the test does.
    """
    sign = 1.0 if higher_is_better else -1.0
    arms = [sign * np.asarray(scores, dtype=np.float64) for scores in (arm, baseline, half, double)]
    lent = [sign * np.asarray(scores, dtype=np.float64) for scores in others]
    gain = float(arms[0].mean() - arms[1].mean())
    side = math.copysign(1.0, gain)
    more, less, rest = (arms[3], arms[1], arms[2]) if side > 0 else (arms[1], arms[2], arms[3])

    def tested(compared: Sequence[Floats], weights: Sequence[float], beside: Sequence[Floats]) -> Moderated | Paired:
        if paired:
            return of_differences(without_rounding(np.asarray(weights) @ np.array(compared), compared))
        return moderated_contrast(compared, weights, beside)

    saturated = tested([more, less], [1.0, -1.0], [arms[0], rest, *lent]).at(level).low <= 0
    rise, fall = (float(arms[one].mean() - arms[other].mean()) for one, other in ((3, 1), (1, 2)))
    doublings = _doublings(abs(gain), *((rise, fall) if side > 0 else (fall, rise)))
    estimate = None if doublings is None else side * doublings * math.log(2)

    def accepted(log_factor: float) -> float:
        """Above 0 where the factor is in the interval."""
        try:
            found = tested(arms, contrast(math.exp(log_factor)), lent)
        except NotTestable:
            return 1.0 if log_factor else -1.0
        return student.quantile((1 + level) / 2, found.df) * found.standard_error - abs(found.difference)

    inside = _component(accepted, side, None if saturated else estimate)
    if saturated:
        inside = (inside[0], math.inf) if side > 0 else (0.0, inside[1])
    return Worth(None if estimate is None else math.exp(min(estimate, 700.0)), *inside, saturated, side < 0)


def _doublings(gain: float, near: float, far: float) -> float | None:
    """Return after how many doublings the baseline has gained so much, the first time; None: never.

    near: what it gains in the doubling towards the arm, far: in the one on its other side. A loss, its sign changed, is
    halvings that lose so much.
    """
    slope, bend = (near + far) / 2, (near - far) / 2
    inside = slope**2 + 4 * bend * gain
    # The smaller root of bend x^2 + slope x = gain, in the form that has no difference of near numbers.
    if inside >= 0 and (below := slope + math.sqrt(inside)) > 0 and (found := 2 * gain / below) <= 1:
        return found
    return gain / near if near > 0 else None


def _component(accepted: Callable[[float], float], side: float, estimate: float | None) -> tuple[float, float]:
    """Return the ends, as factors, of the accepted factors around the estimate, a logarithm; without one, of all above
    1 or below it that are accepted, as the side of the gain says.
    """
    start = 0.0 if estimate is None else float(np.clip(estimate, -FURTHEST, FURTHEST))
    if estimate is None and accepted(0.0) <= 0:
        # The gain is real, and no amount of compute is shown to give it: only its near end is known.
        near = _crossing(accepted, 0.0, side, wanted=True)
        return (math.exp(near), math.inf) if side > 0 else (0.0, math.exp(near))
    low, high = (_crossing(accepted, start, to, wanted=False) for to in (-1.0, 1.0))
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


def as_good_from(
    curve: npt.ArrayLike,
    end: npt.ArrayLike,
    others: Sequence[npt.ArrayLike] = (),
    *,
    paired: bool = False,
    level: float = 0.95,
) -> int | None:
    """Return the first validation from which on an arm is shown to be better than the baseline's end; None: there is
    none.

    curve: of the arm, [validations, seeds]; end: of the baseline, [seeds], the same ones; higher is better. `others`:
    ends of arms that lend their noise, unless `paired`. Validations are tested from the last one back until a test
    does not show it, so that all of them together err no more often than one (fixed sequence; Maurer, Hothorn and
    Lehmacher 1995): in (1 - level) / 2 of studies. The first validation that happens to be as good would be so by luck
    alone, as one of many.
    """
    ends, found = np.asarray(end, dtype=np.float64), None
    for place, values in reversed(list(enumerate(np.asarray(curve, dtype=np.float64)))):
        try:
            test = of_differences(values - ends) if paired else moderated_contrast([values, ends], [1.0, -1.0], others)
        except NotTestable:
            break
        if test.at(level).low <= 0:
            break
        found = place
    return found
