"""The moderated t test: the noise of two arms, estimated with the help of the study's other arms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.conditions import WILD, ratios
from ablab.statistics.interval import Interval
from ablab.statistics.paired import finite, of_differences, without_rounding
from ablab.statistics.student import Floats

VERSION = 2
"""Of this test, which registrations name. The first gave every arm the full weight, and left out nearly failed runs."""

PRIOR = 2.0
"""Largest weight of the pooled variance beside an arm's own, in degrees of freedom."""

LOUD = 2.0
"""An arm's variance, in those of the other arms, up to which it borrows as many degrees of freedom as it can."""

QUIET = 0.05
"""The same, down to which. Three runs that agree by chance say little about the noise of runs that fall into groups."""

TAKEN = 1 / 3
"""Share of the weight that is taken away where an arm is nothing like the others: with few degrees of freedom, Welch
and Satterthwaite's approximation errs too often where one arm makes most of the noise. benchmarks/calibration/worlds
shows what these four numbers give.
"""


@dataclass(frozen=True)
class Moderated:
    """Arm less baseline, or another contrast of arms. `df`: Welch and Satterthwaite's degrees of freedom.

    `p`: two-sided, uncorrected. `weight`: of the pooled variance, `prior`; without one this is Welch's test.
    `variances`: moderated, of the arms; `lent`: degrees of freedom that each borrows; `lenders`: other arms, but for
    wild ones.
    """

    n: int
    difference: float
    standard_error: float
    df: float
    p: float
    weight: float = PRIOR
    variances: Sequence[float] = ()
    lent: Sequence[float] = ()
    lenders: int = 0

    @property
    def method(self) -> str:
        name = "moderated" if self.weight else "Welch's"
        return f"{name} t, {self.df:.1f} degrees of freedom"

    def at(self, level: float) -> Interval:
        """Return the interval of the difference at this level."""
        half = student.quantile((1 + level) / 2, self.df) * self.standard_error
        return Interval(self.difference - half, self.difference + half, level, self.method)


def moderated(arm: npt.ArrayLike, baseline: npt.ArrayLike, others: Sequence[npt.ArrayLike] = ()) -> Moderated:
    """Compare two arms, [seeds] each, of the same seeds; see `moderated_contrast`, whose weights are then 1 and -1."""
    return moderated_contrast([arm, baseline], [1.0, -1.0], others)


def moderated_contrast(
    arms: Sequence[npt.ArrayLike], weights: Sequence[float], others: Sequence[npt.ArrayLike] = ()
) -> Moderated:
    """Estimate the sum of weighted arms, whose variances borrow strength from the study's `others` (after Smyth 2004).

    arms: [seeds] each, of the same seeds; weights: one for each arm; others: [seeds] each, two or more. Each arm's
    variance s^2, with d = n - 1 degrees of freedom, is moderated towards the mean s0^2 over all arms,
    m = (d s^2 + d0 s0^2) / (d + d0), but is never below s^2: an arm that scatters more than the others keeps its own
    noise. d0 is `prior`. Others that scatter wildly lend nothing. The standard error is sqrt(sum of weight^2 m / n),
    with Welch and Satterthwaite's degrees of freedom, to which an arm adds as many as `borrowed` says. Smyth estimates
    d0 from thousands of variances; the handful of a study cannot tell it, so it is fixed.

    Raises NotTestable as `of_differences` does.
    """
    values = [finite(scores, "arms") for scores in arms]
    if len({scores.size for scores in values}) != 1 or len(values) != len(weights):
        sizes = [scores.size for scores in values]
        raise ValueError(f"all arms have the same seeds, and a weight each, got {sizes} seeds and {len(weights)}.")
    shares = np.asarray(weights, dtype=np.float64)
    scores = np.stack(values)
    paired = of_differences(without_rounding((shares[:, None] * scores).sum(axis=0), scores))
    everyone = [*values, *(finite(scores, "others") for scores in others)]
    variances = np.array([scores.var(ddof=1) for scores in everyone])
    degrees = np.array([scores.size - 1.0 for scores in everyone])
    compared = np.arange(len(everyone)) < len(values)
    alike = ~(ratios(everyone) > WILD)
    weight = prior(float(degrees[alike & ~compared].sum()))
    own, df = variances[compared], degrees[0]
    pooled = _mean(variances, degrees, compared | alike)
    steady = np.maximum(own, (df * own + weight * pooled) / (df + weight))
    rest = np.array([_of_the_rest(variances, degrees, alike, compared, arm) for arm in range(own.size)])
    parts = shares**2 * steady / paired.n
    error = float(parts.sum() ** 0.5)
    lent = borrowed(own, rest, weight)
    freedom = float(parts.sum() ** 2 / (parts**2 / (df + lent)).sum())
    p = float(student.two_sided(paired.difference / error, freedom))
    lenders = int((alike & ~compared).sum())
    return Moderated(paired.n, paired.difference, error, freedom, p, weight, steady.tolist(), lent.tolist(), lenders)


def borrowed(own: Floats, rest: Floats, weight: float) -> Floats:
    """Return the degrees of freedom that arms add to their own; elementwise.

    own, rest: variances of each arm, and of the others. All of `weight` where these are alike. The more an arm scatters
    beyond LOUD times the others, the less they say about it, by the square of the excess; the less it scatters below
    QUIET times the others, the less it says itself. At the extremes TAKEN of the weight is taken away instead.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        likeness = np.minimum((LOUD * rest / own) ** 2, own / (QUIET * rest))
    likeness = np.clip(np.nan_to_num(likeness), 0.0, 1.0)
    return np.asarray(weight * (likeness - TAKEN * (1 - likeness)))


def _of_the_rest(
    variances: Floats, degrees: Floats, alike: npt.NDArray[np.bool_], compared: npt.NDArray[np.bool_], arm: int
) -> float:
    """Return the variance of all other arms but the wild ones; of those that are compared where there are no more."""
    other = np.arange(variances.size) != arm
    return _mean(variances, degrees, other & alike if (other & alike).any() else other & compared)


def _mean(variances: Floats, degrees: Floats, of: npt.NDArray[np.bool_]) -> float:
    return float(degrees[of] @ variances[of] / degrees[of].sum())


def prior(spare: float) -> float:
    """Return the weight of the pooled variance beside an arm's own, both in degrees of freedom.

    spare: degrees of freedom of the arms that are not compared. A weight above half of them would rest on too little.
    """
    return min(PRIOR, spare / 2)
