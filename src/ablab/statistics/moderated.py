"""The moderated t test: the noise of two arms, estimated with the help of the study's other arms."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.conditions import WILD, ratios
from ablab.statistics.interval import Interval
from ablab.statistics.paired import finite, of_differences, without_rounding
from ablab.statistics.student import Floats

VERSION = 3
"""Of this test, which registrations name. The first gave every arm the full weight, and left out nearly failed runs.
The second pooled the compared arms with the others, so that a quiet one made the noise of the other seem smaller.
"""

PRIOR = 3.0
"""Largest weight of the lenders' variance beside an arm's own, in degrees of freedom."""

LOUD = 2.0
"""An arm's variance, in those of the lenders, up to which it borrows as many degrees of freedom as it can."""

QUIET = 0.15
"""The same, down to which. Three runs that agree by chance say little about the noise of runs that fall into groups."""

TAKEN = 1 / 3
"""Share of the weight that is taken away where an arm is nothing like the lenders: with few degrees of freedom, Welch
and Satterthwaite's approximation errs too often where one arm makes most of the noise. benchmarks/calibration/worlds
shows what these four numbers give.
"""


@dataclass(frozen=True)
class Moderated:
    """Arm less baseline, or another contrast of arms. `df`: Welch and Satterthwaite's degrees of freedom.

    `p`: two-sided, uncorrected. `shares`: weights of the arms; `variances`: theirs, moderated; `rest`: that of the
    lenders, which are so many other arms, the wild ones left out, with so many `spare` degrees of freedom together.
    """

    n: int
    difference: float
    standard_error: float
    df: float
    p: float
    shares: Sequence[float] = ()
    variances: Sequence[float] = ()
    rest: float = 0.0
    lenders: int = 0
    spare: float = 0.0

    @property
    def method(self) -> str:
        name = "moderated" if self.lenders else "Welch's"
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
    variance s^2, with d = n - 1 degrees of freedom, is moderated towards the mean s0^2 over the others,
    m = (d s^2 + d0 s0^2) / (d + d0), but is never below s^2: an arm that scatters more than the others keeps its own
    noise. d0 is `prior`. Others that scatter wildly lend nothing. The standard error is sqrt(sum of weight^2 m / n),
    with Welch and Satterthwaite's degrees of freedom, to which an arm adds as many as `borrowed` says. Smyth estimates
    d0 from thousands of variances; the handful of a study cannot tell it, so it is fixed. And his s0^2 is of all arms:
    of few, a quiet one that is compared would make the noise of the other seem smaller.

    Raises NotTestable as `of_differences` does.
    """
    values = [finite(scores, "arms") for scores in arms]
    if len({scores.size for scores in values}) != 1 or len(values) != len(weights):
        sizes = [scores.size for scores in values]
        raise ValueError(f"all arms have the same seeds, and a weight each, got {sizes} seeds and {len(weights)}.")
    shares = np.asarray(weights, dtype=np.float64)
    scores = np.stack(values)
    paired = of_differences(without_rounding((shares[:, None] * scores).sum(axis=0), scores))
    lending = [finite(scores, "others") for scores in others]
    lending = list(compress(lending, ~(ratios([*values, *lending])[len(values) :] > WILD)))
    degrees = np.array([scores.size - 1.0 for scores in lending])
    lenders = np.array([scores.var(ddof=1) for scores in lending])
    spare = float(degrees.sum())
    rest = float(degrees @ lenders / spare) if lending else 0.0
    found = estimated(scores.var(axis=1, ddof=1), rest, prior(spare), shares, paired.n)
    error, df = float(found.error), float(found.df)
    return Moderated(
        n=paired.n,
        difference=paired.difference,
        standard_error=error,
        df=df,
        p=float(student.two_sided(paired.difference / error, df)),
        shares=shares.tolist(),
        variances=found.variances.tolist(),
        rest=rest,
        lenders=len(lending),
        spare=spare,
    )


class Estimated(NamedTuple):
    """Of studies: moderated variances of the compared arms, [..., arms]; standard error and its degrees of freedom."""

    variances: Floats
    error: Floats
    df: Floats


def estimated(own: Floats, rest: Floats | float, weight: Floats | float, shares: Floats, seeds: int) -> Estimated:
    """Return what the test estimates of the noise of many studies, or of one.

    own: variances of the compared arms, [..., arms]; rest, weight: of the lenders, [..., 1] or one number; shares:
    weights of the arms in what is estimated. An arm keeps at least half of its own degrees of freedom: of two seeds,
    none would be left.
    """
    degrees = seeds - 1
    variances = np.maximum(own, (degrees * own + weight * rest) / (degrees + weight))
    parts = shares**2 * variances / seeds
    lent = np.maximum(borrowed(own, rest, weight), -degrees / 2)
    df = parts.sum(axis=-1) ** 2 / (parts**2 / (degrees + lent)).sum(axis=-1)
    return Estimated(variances, parts.sum(axis=-1) ** 0.5, df)


def borrowed(own: Floats, rest: Floats | float, weight: Floats | float) -> Floats:
    """Return the degrees of freedom that arms add to their own; elementwise.

    own, rest: variances of each arm, and of the lenders. All of `weight` where these are alike. The more an arm
    scatters beyond LOUD times the lenders, the less they say about it, by the square of the excess; the less it
    scatters below QUIET times the lenders, the less it says itself. At the extremes TAKEN of the weight is taken away
    instead.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        likeness = np.minimum((LOUD * rest / own) ** 2, own / (QUIET * rest))
    likeness = np.clip(np.nan_to_num(likeness), 0.0, 1.0)
    return np.asarray(weight * (likeness - TAKEN * (1 - likeness)))


def prior(spare: float) -> float:
    """Return the weight of the lenders' variance beside an arm's own, both in degrees of freedom.

    spare: degrees of freedom of the lenders. A weight above half of them would rest on too little.
    """
    return min(PRIOR, spare / 2)
