"""The moderated t test: the noise of two arms, estimated with the help of the study's other arms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.interval import Interval
from ablab.statistics.paired import finite, of_differences, without_rounding

PRIOR = 2.0
"""Largest weight of the pooled variance beside an arm's own, in degrees of freedom. benchmarks/calibration/borrowing
shows what other weights would give: 4 finds more, and errs more where one arm is noisier than the others.
"""


@dataclass(frozen=True)
class Moderated:
    """Arm less baseline, or another contrast of arms. `df`: Welch and Satterthwaite's degrees of freedom.

    `p`: two-sided, uncorrected.
    """

    n: int
    difference: float
    standard_error: float
    df: float
    p: float

    @property
    def method(self) -> str:
        return f"moderated t, {self.df:.1f} degrees of freedom"

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
    noise. d0 is `prior`. The standard error is sqrt(sum of weight^2 m / n), with Welch and Satterthwaite's degrees of
    freedom from d + d0. Smyth estimates d0 from thousands of variances; the handful of a study cannot tell it, so it is
    fixed.

    Raises NotTestable as `of_differences` does.
    """
    values = [finite(scores, "arms") for scores in arms]
    if len({scores.size for scores in values}) != 1 or len(values) != len(weights):
        sizes = [scores.size for scores in values]
        raise ValueError(f"all arms have the same seeds, and a weight each, got {sizes} seeds and {len(weights)}.")
    shares = np.asarray(weights, dtype=np.float64)
    scores = np.stack(values)
    paired = of_differences(without_rounding((shares[:, None] * scores).sum(axis=0), scores))
    more = [finite(scores, "others") for scores in others]
    own, df = scores.var(axis=1, ddof=1), scores.shape[1] - 1
    spare = sum(scores.size - 1 for scores in more)
    squares = df * own.sum() + sum((scores.size - 1) * scores.var(ddof=1) for scores in more)
    pooled = squares / (len(values) * df + spare)
    weight = prior(spare)
    parts = shares**2 * np.maximum(own, (df * own + weight * pooled) / (df + weight)) / scores.shape[1]
    error = float(parts.sum() ** 0.5)
    degrees = float(parts.sum() ** 2 / (parts**2 / (df + weight)).sum())
    p = float(student.two_sided(paired.difference / error, degrees))
    return Moderated(paired.n, paired.difference, error, degrees, p)


def prior(spare: float) -> float:
    """Return the weight of the pooled variance beside an arm's own, both in degrees of freedom.

    spare: degrees of freedom of the arms that are not compared. A weight above half of them would rest on too little.
    """
    return min(PRIOR, spare / 2)


NEAR_FAILURE = 6.0
"""Distance from its arm's median, in pooled standard deviations of the other arms, from which a run nearly failed."""

FEWEST = 4
"""Degrees of freedom of the other arms below which their scatter is too uncertain to say so."""


def near_failures(arms: Mapping[str, npt.ArrayLike], *, higher_is_better: bool) -> dict[str, list[int]]:
    """Return the indices of runs that nearly failed, by arm; arms without one are left out.

    arms: [seeds] each. A run nearly failed if it is worse than the median of its arm by more than NEAR_FAILURE times
    the standard deviation within the other arms. An arm of two runs has no median to be far from.
    """
    scores = {name: finite(values, name) for name, values in arms.items()}
    sign = 1.0 if higher_is_better else -1.0
    found = {}
    for name, values in scores.items():
        others = [other for key, other in scores.items() if key != name and other.size > 1]
        df = sum(other.size - 1 for other in others)
        if values.size < 3 or df < FEWEST:
            continue
        # The median of the variances, scaled by their degrees of freedom: another arm's own near-failure must not hide
        # this one.
        scatter = float(np.median([other.var(ddof=1) for other in others]) ** 0.5)
        short = sign * (np.median(values) - values)
        if scatter > 0 and (short > NEAR_FAILURE * scatter).any():
            found[name] = [int(index) for index in np.flatnonzero(short > NEAR_FAILURE * scatter)]
    return found
