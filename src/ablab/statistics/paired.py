"""The primary inference: an arm's mean, and differences paired by seed, with the test set as it is.

Also equivalence: showing that a difference is too small to matter, which is more than failing to show one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.interval import Interval, NotTestable
from ablab.statistics.student import Floats


def t_interval(values: Floats, level: float) -> Interval:
    """Return the t interval of the mean of n >= 2 values: mean +- t(n-1) sd / sqrt(n) (Student 1908)."""
    n, mean = values.size, float(values.mean())
    half = student.quantile((1 + level) / 2, n - 1) * float(values.std(ddof=1)) / n**0.5
    return Interval(mean - half, mean + half, level, f"t interval over {n} seeds")


def finite(values: npt.ArrayLike, name: str) -> Floats:
    """Return a flat array. Raises ValueError for a shape other than [seeds], or for values that are not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be [seeds], got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; a diverged run is compared by its share of failures, got {array}.")
    return array


MINIMUM_SEEDS = 3
"""From this number on, benchmarks/calibration shows the error rates. Two seeds give valid but useless intervals."""


@dataclass(frozen=True)
class Paired:
    """Arm less baseline. `p`: two-sided, uncorrected. `sd`: of the differences over seeds."""

    n: int
    difference: float
    sd: float
    p: float

    method = "paired t"

    @property
    def standard_error(self) -> float:
        """Standard error of the mean difference."""
        return self.sd / self.n**0.5

    @property
    def df(self) -> float:
        """Degrees of freedom."""
        return self.n - 1

    def at(self, level: float) -> Interval:
        """Return the interval of the mean difference at this level."""
        half = student.quantile((1 + level) / 2, self.df) * self.standard_error
        return Interval(self.difference - half, self.difference + half, level, f"t interval over {self.n} seeds")


def paired_difference(arm: npt.ArrayLike, baseline: npt.ArrayLike) -> Paired:
    """Paired t test (Student 1908): t = mean(d) sqrt(n) / sd(d), n - 1 degrees of freedom.

    arm, baseline: [seeds], in the metric's units; entry i of both is from the same seed. Raises NotTestable as
    `of_differences` does.
    """
    left, right = finite(arm, "arm"), finite(baseline, "baseline")
    if left.size != right.size:
        raise ValueError(f"scores are paired by seed, got {left.size} and {right.size}.")
    return of_differences(without_rounding(left - right, [left, right]))


def of_differences(differences: npt.ArrayLike) -> Paired:
    """Paired t test from differences, [seeds].

    Raises NotTestable for fewer than two differences, or when they do not vary at all.
    """
    values = finite(differences, "differences")
    if values.size < 2:
        raise NotTestable(f"a difference needs at least 2 seeds that both arms have, not {values.size}")
    if not vary(values):
        raise NotTestable(
            f"the difference is {values[0]:g} under each of {values.size} seeds, and noise is not so regular"
            " (do the arms differ, and do the seeds? are the scores rounded?)"
        )
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    t = mean / (sd / values.size**0.5)
    return Paired(values.size, mean, sd, float(student.two_sided(t, values.size - 1)))


ROUNDING = 1e-12
"""Share of a number that counts as rounding: a double has about 16 digits, of which sums and means lose some."""


TINY = 1e-150
"""Of numbers below, squares are 0."""


def vary(values: Floats, size: float | None = None) -> bool:
    """Return whether the values differ by more than rounding. size: of the numbers they come from, if not their own."""
    least = ROUNDING * (float(np.abs(values).max()) if size is None else size)
    return bool(np.ptp(values) > max(least, TINY))


def without_rounding(differences: Floats, scores: npt.ArrayLike) -> Floats:
    """Return differences between scores, [seeds]; all are their mean if they differ by no more than rounding.

    scores: those that were subtracted, in any shape. 12345.4 less 12345.1 has an error of 1e-12, which under several
    seeds is no noise to judge a difference by.
    """
    if differences.size < 2 or vary(differences, size := float(np.abs(scores).max())):
        return differences
    mean = float(differences.mean())
    return np.full_like(differences, mean if abs(mean) > ROUNDING * size else 0.0)


def tost(difference: float, standard_error: float, df: float, margin: float) -> float:
    """Return the larger p of two one-sided t tests of |mean difference| >= margin > 0 (Schuirmann 1987).

    It is below alpha if and only if the interval at 1 - 2 alpha lies within the margin, and above 1/2 where the
    difference itself is outside.
    """
    return float(student.upper_tail((margin - abs(difference)) / standard_error, df))
