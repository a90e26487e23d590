"""Drift over a study: whether scores follow the order in which their runs ran."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.interval import Interval, NotTestable
from ablab.statistics.paired import finite
from ablab.statistics.student import Floats

FEWEST = 3
"""Runs below which a line leaves no noise."""


@dataclass(frozen=True)
class Trend:
    """A straight line through scores by their places. `change`: along it, over the whole span of places."""

    change: float
    interval: Interval
    p: float
    n: int


def trend(places: npt.ArrayLike, scores: npt.ArrayLike, span: float, level: float = 0.95) -> Trend:
    """Fit scores, [runs], by the places of their runs, [runs], and test that the slope is 0 (t, runs - 2 df).

    span: from the first place of the study to its last. The error rate is that of the level if runs are independent and
    their noise is near normal. Raises NotTestable for fewer than three runs, and where all have one place.
    """
    x, y = finite(places, "places"), finite(scores, "scores")
    if x.shape != y.shape:
        raise ValueError(f"places and scores must be of the same runs, got {x.shape} and {y.shape}.")
    if len(x) < FEWEST:
        raise NotTestable(f"{len(x)} runs have no trend to tell from noise: there must be {FEWEST}")
    if np.ptp(x) == 0:
        raise NotTestable("all runs have one place")
    if np.ptp(y) == 0:
        return Trend(0.0, Interval(0.0, 0.0, level, "t of the slope"), 1.0, len(x))
    (slope, error), df = line(x, y), len(x) - 2
    with np.errstate(divide="ignore", invalid="ignore"):
        p = float(student.two_sided(np.float64(slope) / error, df))
    half = student.quantile((1 + level) / 2, df) * error
    low, high = ((slope + side * half) * span for side in (-1, 1))
    return Trend(slope * span, Interval(low, high, level, "t of the slope"), p, len(x))


def line(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the slope of the least-squares line through points, and its standard error (that of two is rounding)."""
    centred = x - x.mean()
    width = float(centred @ centred)
    slope = float(centred @ y) / width
    left = y - y.mean() - slope * centred
    return slope, (float(left @ left) / max(1, len(x) - 2) / width) ** 0.5
