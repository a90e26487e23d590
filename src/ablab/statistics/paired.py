"""The primary inference: differences paired by seed, with the test set as it is."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.arm import finite, t_interval
from ablab.statistics.interval import Interval, check_level
from ablab.statistics.refusal import NotTestable
from ablab.statistics.student import Floats

MINIMUM_SEEDS = 3
"""From here on benchmarks/calibration shows the error rates. Two seeds give valid but useless intervals."""


@dataclass(frozen=True)
class Paired:
    """Arm less baseline. `p`: two-sided, uncorrected. `sd`: of the differences over seeds."""

    n: int
    difference: float
    sd: float
    interval: Interval
    p: float

    @property
    def standard_error(self) -> float:
        """Of the mean difference."""
        return self.sd / self.n**0.5


def paired_difference(arm: npt.ArrayLike, baseline: npt.ArrayLike, level: float = 0.95) -> Paired:
    """Paired t test and interval (Student 1908): t = mean(d) sqrt(n) / sd(d), n - 1 degrees of freedom.

    arm, baseline: [seeds], in the metric's units; entry i of both is from the same seed. Raises NotTestable as
    `of_differences` does.
    """
    left, right = finite(arm, "arm"), finite(baseline, "baseline")
    if left.size != right.size:
        raise ValueError(f"scores are paired by seed, got {left.size} and {right.size}.")
    return of_differences(left - right, level)


def of_differences(differences: npt.ArrayLike, level: float = 0.95) -> Paired:
    """The same of differences, [seeds]. Raises NotTestable for fewer than two, or when they do not vary at all."""
    values = finite(differences, "differences")
    check_level(level)
    if values.size < 2:
        raise NotTestable(f"a difference needs at least 2 seeds that both arms have, there are {values.size}")
    if not _vary(values):
        raise NotTestable(
            f"the difference is {values[0]:g} under each of {values.size} seeds: no noise to judge it by"
            " (do the arms differ, and do the seeds?)"
        )
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    t = mean / (sd / values.size**0.5)
    return Paired(values.size, mean, sd, t_interval(values, level), float(student.two_sided(t, values.size - 1)))


def _vary(values: Floats) -> bool:
    """By more than rounding: subtracting scores of 0 to 100 leaves errors of about 1e-14."""
    return bool(np.ptp(values) > 1e-12 * max(1.0, float(np.abs(values).max())))
