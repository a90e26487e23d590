"""Test of convergence: whether validation was still improving when training ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ablab.statistics import student
from ablab.statistics.interval import NotTestable
from ablab.statistics.student import Floats
from ablab.statistics.trend import line

LAST = 0.2
"""The share of training, at its end, that is examined."""

TWO_VALIDATIONS = "convergence needs two validations in the last fifth of training"

Curve = tuple[Sequence[float], Sequence[float]]
"""Steps, and the validation scores after them."""


@dataclass(frozen=True)
class Drift:
    """Improvement of validation over the last fifth of training; above 0 is better whatever the metric.

    `improvement`: mean over curves, in the metric's units. `low`, `high`: its 90 % interval, None where one curve has
    too few points to tell noise from drift. *moving*: under-trained. *still*: shown to be below the threshold.
    *unclear*: neither; no reason to distrust the arm, but more seeds or validations would tell.
    """

    state: Literal["moving", "still", "unclear"]
    improvement: float
    low: float | None
    high: float | None


def drift(curves: Sequence[Curve], *, threshold: float, higher_is_better: bool) -> Drift:
    """Judge an arm's validation curves, one per seed.

    threshold: > 0, in the metric's units, the smallest improvement that matters, such as the margin of the claims. As
    gains shrink towards the end of training, so much is also about what another fifth could have changed.

    Through the points of the last fifth of each curve (steps >= 0.8 of the last) goes a least-squares line; slope times
    length is the improvement. Noise: from two curves on, their spread, with a t interval over seeds, which holds
    however validations of one run depend on each other; for a single curve the scatter around its line, from three
    points on. *moving* needs a mean improvement above the threshold that is also significantly above 0 (one-sided, at
    5 %): a big jump of a noisy curve is no drift, nor is a tiny slope of a smooth one. Where noise is unknown, an
    improvement above the threshold counts as moving, the safe side. Getting worse is never under-training.

    Raises NotTestable when a curve has fewer than two validations in its last fifth.
    """
    if not threshold > 0:
        raise ValueError(f"the threshold must be above 0, got {threshold=}.")
    if not curves:
        raise NotTestable("no validation curve")
    tails = [_tail(*curve) for curve in curves]
    sign = 1.0 if higher_is_better else -1.0
    fits = [_line(steps, sign * values) for steps, values in tails]
    gains = np.array([gain for gain, _ in fits])
    mean = float(gains.mean())
    if len(curves) > 1:
        error, df = float(gains.std(ddof=1)) / len(curves) ** 0.5, len(curves) - 1
    else:
        error, df = fits[0][1], tails[0][0].size - 2
    half = student.quantile(0.95, df) * error if df else None
    low, high = (None, None) if half is None else (mean - half, mean + half)
    return Drift(_state(mean, low, high, threshold), mean, low, high)


def validations_at_the_end(every: int, last: int) -> int:
    """Return how many validations the last fifth of training has, if one comes every so many steps and at the end."""
    return sum(_is_late(step, last) for step in {*range(every, last + 1, every), last})


def _is_late(step: Any, last: float) -> Any:
    """Return whether steps lie in the last fifth, up to rounding."""
    return step >= (1 - LAST) * last * (1 - 1e-12)


def _state(
    mean: float, low: float | None, high: float | None, threshold: float
) -> Literal["moving", "still", "unclear"]:
    if mean > threshold and (low is None or low > 0):
        return "moving"
    return "still" if high is not None and high < threshold else "unclear"


def _tail(steps: Sequence[float], values: Sequence[float]) -> tuple[Floats, Floats]:
    """Return the points of the last fifth, after validating the curve."""
    at, scores = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if at.ndim != 1 or at.shape != scores.shape:
        raise ValueError(f"one score for each step, got shapes {at.shape} and {scores.shape}.")
    if not (np.isfinite(at).all() and np.isfinite(scores).all() and (np.diff(at) > 0).all()):
        raise ValueError("steps must increase, and scores must be finite.")
    last = _is_late(at, at[-1]) if at.size else np.zeros(0, dtype=bool)
    if last.sum() < 2:
        raise NotTestable(f"{TWO_VALIDATIONS}, not {last.sum()}")
    return at[last], scores[last]


def _line(steps: Floats, values: Floats) -> tuple[float, float]:
    """Rise of the least-squares line from the first step to the last, and its standard error."""
    slope, error = line(steps, values)
    length = float(steps[-1] - steps[0])
    return slope * length, error * length
