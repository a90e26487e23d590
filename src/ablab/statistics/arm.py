"""One arm by itself: what its seeds scored."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.interval import Interval, check_level
from ablab.statistics.refusal import NotTestable
from ablab.statistics.student import Floats


@dataclass(frozen=True)
class Arm:
    """`sd`: sample standard deviation over seeds (n - 1 in the denominator). One seed has neither sd nor interval."""

    n: int
    mean: float
    sd: float | None
    interval: Interval | None
    minimum: float
    maximum: float


def summarise(scores: npt.ArrayLike, level: float = 0.95) -> Arm:
    """Mean, spread and t interval of the mean over seeds: mean +- t(n-1) sd / sqrt(n) (Student 1908).

    scores: [seeds], finite, in the metric's units. Raises NotTestable when there are none.
    """
    values = finite(scores, "scores")
    check_level(level)
    if not values.size:
        raise NotTestable("no scores: no run of this arm has finished")
    several = values.size > 1
    return Arm(
        n=values.size,
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)) if several else None,
        interval=t_interval(values, level) if several else None,
        minimum=float(values.min()),
        maximum=float(values.max()),
    )


def t_interval(values: Floats, level: float) -> Interval:
    """Of the mean of n >= 2 values."""
    n, mean = values.size, float(values.mean())
    half = student.quantile((1 + level) / 2, n - 1) * float(values.std(ddof=1)) / n**0.5
    return Interval(mean - half, mean + half, level, f"t interval over {n} seeds")


def finite(values: npt.ArrayLike, name: str) -> Floats:
    """As a flat array; ValueError for a shape other than [seeds], or for what is not a number."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be [seeds], got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; a diverged run is compared by its share of failures, got {array}.")
    return array
