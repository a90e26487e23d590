"""Showing that a difference is too small to matter, which is more than failing to show one."""

from dataclasses import dataclass

import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.interval import Interval
from ablab.statistics.paired import of_differences


@dataclass(frozen=True)
class Equivalence:
    """`interval`: at level 1 - 2 alpha (90 % for 5 %); `p` <= alpha if and only if it lies within the margin."""

    margin: float
    interval: Interval
    p: float
    equivalent: bool


def equivalence(differences: npt.ArrayLike, margin: float, alpha: float = 0.05) -> Equivalence:
    """Two one-sided t tests of |mean difference| >= margin (Schuirmann 1987).

    differences: [seeds], arm less baseline; margin: > 0, in the metric's units. Raises NotTestable as the paired
    difference does. Each side is tested at alpha, hence the interval at 1 - 2 alpha; no correction is needed for two
    tests, since both must reject.
    """
    if margin <= 0:
        raise ValueError(f"equivalence needs a margin above 0, got {margin=}.")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha lies strictly between 0 and 0.5, got {alpha=}.")
    paired = of_differences(differences, 1 - 2 * alpha)
    p = tost(paired.difference, paired.standard_error, paired.n - 1, margin)
    return Equivalence(margin, paired.interval, p, p < alpha)


def tost(difference: float, standard_error: float, df: float, margin: float) -> float:
    """The larger p-value of the two one-sided tests; above 1/2 when the difference itself is outside the margin."""
    return float(student.upper_tail((margin - abs(difference)) / standard_error, df))
