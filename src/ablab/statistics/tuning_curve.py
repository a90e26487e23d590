"""Tuning curves: expected ones, and medians with exact confidence bands (Lourie, Cho and He 2024).

The cost of a randomly drawn setting has a distribution F. The best of k draws has its median where F is 1 - 2^(-1/k).
So a band that holds all of F also holds the whole curve of these medians. The band of F comes from the order statistics
of n draws: F at the i-th smallest cost is distributed as the i-th smallest of n uniform numbers, whatever F is. Each is
bounded by quantiles of its beta distribution, at the level at which all of them hold together with the wanted chance.
"""

from collections.abc import Sequence
from functools import cache
from math import ceil, comb, isfinite
from typing import NamedTuple

import numpy as np

from ablab.statistics.student import Floats

MOST = 200
"""Draws for which a band is computed; its time grows with the third power of their number."""

STEPS = 40
"""Halvings in the search for the level."""


class BestOf(NamedTuple):
    """The median of the best of `k` draws, with its band."""

    k: int
    estimate: float
    low: float
    high: float


def best_of(costs: Sequence[float], level: float = 0.8) -> list[BestOf]:
    """Return the curve for every k at which its estimate and both ends of its band are finite.

    costs: of independent draws; infinite for one that diverged. Raises ValueError for fewer than 2 or more than MOST.
    """
    if not 2 <= len(costs) <= MOST:
        raise ValueError(f"a tuning curve takes 2 to {MOST} draws, got {len(costs)}.")
    ordered, n = sorted(costs), len(costs)
    low, high = bands(n, level)
    found = []
    for k in range(1, n + 1):
        share = 1.0 - 2.0 ** (-1.0 / k)
        below = np.flatnonzero(high < share)
        above = np.flatnonzero(low >= share)
        estimate = ordered[max(ceil(share * n) - 1, 0)]
        if below.size and above.size and isfinite(estimate) and isfinite(ordered[above[0]]):
            found.append(BestOf(k, estimate, ordered[below[-1]], ordered[above[0]]))
    return found


def expected_best(costs: Sequence[float], of: int) -> list[float]:
    """Return the mean of the smallest of k costs, over all choices of k trials (Dodge et al. 2019).

    costs: of the trials that did not diverge, ascending; of: the number of all trials, n. k runs from one more than
    have diverged, so that every choice has a cost, to n. The smallest of k is cost i (from 0) in comb(n - i - 1, k - 1)
    of comb(n, k) choices.
    """
    return [
        sum(cost * comb(of - i - 1, k - 1) for i, cost in enumerate(costs)) / comb(of, k)
        for k in range(of - len(costs) + 1, of + 1)
    ]


@cache
def bands(n: int, level: float) -> tuple[Floats, Floats]:
    """Return ends between which all n ordered uniform numbers lie with the chance `level`, both [n]."""
    from scipy.special import betaincinv

    ranks = np.arange(1, n + 1, dtype=np.float64)

    def ends(each: float) -> tuple[Floats, Floats]:
        tail = (1.0 - each) / 2.0
        return betaincinv(ranks, n + 1 - ranks, tail), betaincinv(ranks, n + 1 - ranks, 1.0 - tail)

    least, most = level, 1.0
    for _ in range(STEPS):
        middle = (least + most) / 2.0
        least, most = (middle, most) if together(*ends(middle)) < level else (least, middle)
    return ends(most)


def together(low: Floats, high: Floats) -> float:
    """Return the chance that each of n ordered uniform numbers lies between its ends. low, high: ascending, [n].

    Exactly, by the number of those below each point in turn: of what is left above the point before, it is binomial.
    """
    n = len(low)
    points = np.unique(np.concatenate([low, high]))
    counts = np.arange(n + 1)
    chances: Floats = np.zeros(n + 1)
    chances[0] = 1.0
    before = 0.0
    for point in points:
        chances = chances @ _more(n, min(1.0, (point - before) / (1.0 - before)) if before < 1.0 else 0.0)
        # At most as many lie below the point as may, and at least as many as must.
        chances[counts > np.searchsorted(low, point, side="left")] = 0.0
        chances[counts < np.searchsorted(high, point, side="right")] = 0.0
        before = point
    return float(chances.sum())


def _more(n: int, share: float) -> Floats:
    """Return the chance of each step from one count to another, [n + 1, n + 1], where a share of the rest comes in."""
    from scipy.stats import binom

    counts = np.arange(n + 1)
    return np.asarray(binom.pmf(counts[None, :] - counts[:, None], n - counts[:, None], share))
