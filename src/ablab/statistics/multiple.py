"""Correction for several claims in one study, under one family-wise error rate."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics.student import Floats


def holm(p: npt.ArrayLike) -> Floats:
    """Adjusted p-values (Holm 1979): the largest of (m - k + 1) p_(k) so far, at most 1, in the given order.

    p: [m] in [0, 1]. Rejecting those at most alpha keeps the chance of any false rejection at alpha or less under any
    dependence.
    """
    return steps_down(_probabilities(p)).adjusted


@dataclass(frozen=True)
class StepsDown:
    """Hypotheses in the order in which Holm's procedure drops them. `rank`: [m], from 0. `adjusted`: [m]."""

    rank: npt.NDArray[np.int64]
    adjusted: Floats


def steps_down(p: Floats) -> StepsDown:
    """Order the hypotheses and adjust their p-values by Holm's procedure. Ties keep the given order."""
    count = p.size
    order = np.argsort(p, kind="stable")
    adjusted, rank = np.empty(count), np.empty(count, dtype=np.int64)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate((count - np.arange(count)) * p[order]))
    rank[order] = np.arange(count)
    return StepsDown(rank, adjusted)


@dataclass(frozen=True)
class Family:
    """Claims that share one error rate. All arrays are [m].

    `zero`: adjusted p of "there is no difference". `outside`: of "the difference is as large as the margin or larger".
    `inside`: of "it is smaller than the margin". A hypothesis falls when its value is at most alpha. `local`: the level
    at which the claim was last judged: its intervals are those at 1 - local, and at 1 - 2 local for equivalence.
    """

    zero: Floats
    outside: Floats
    inside: Floats
    local: Floats


def family(
    zero: npt.ArrayLike, outside: npt.ArrayLike, inside: npt.ArrayLike, settled: npt.ArrayLike, alpha: float = 0.05
) -> Family:
    """Holm's procedure (1979) over claims of which each may be decided in several ways.

    zero, outside, inside: [m], unadjusted p-values per claim; 1 for a hypothesis that the claim does not put to the
    test, and for a claim that cannot be tested (it keeps its place: how training went must not choose the family).
    settled: [m], the smallest level at which nothing is left to decide about the claim. alpha: for the whole family.

    Every claim begins with the share alpha / m. A claim is *settled* when its interval lies wholly within one of the
    regions that its margin cuts out, so that no further decision about it can be made, rightly or wrongly; then its
    share passes on to the others. A claim decided in one way but still open in another keeps its share: ten equal arms
    are soon seen to be equivalent, and if each passed its share on, the ten tests of "no difference", all true, would
    err in 39 % of studies. That at most one of a claim's hypotheses is true, so that they need one share, not two, is
    Shaffer's (1986) use of logical restrictions. With all margins 0 this is Holm's procedure.

    The intervals at 1 - local agree with the decisions (Serlin 1993), and those of open claims cover simultaneously. Of
    a settled claim only the region is simultaneous: that is the price of Holm's power (Strassburger & Bretz 2008;
    Guilbaud 2008). `simultaneous_level` is for those who want all intervals to cover at once.
    """
    ways = [_probabilities(p) for p in (zero, outside, inside, settled)]
    if len({way.size for way in ways}) != 1:
        raise ValueError(f"one p-value per claim and hypothesis, got {[way.size for way in ways]}.")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha lies strictly between 0 and 0.5, got {alpha=}.")
    steps = steps_down(ways[3])
    count = steps.rank.size
    shares = count - np.arange(count)
    # Of the claim that falls k-th: alpha must have reached what the earlier ones needed.
    reached = np.concatenate([[0.0], np.sort(steps.adjusted)[:-1]]) if count else np.empty(0)
    allowed = np.arange(count) <= steps.rank[:, None]

    def adjusted(p: Floats) -> Floats:
        tried = np.maximum(reached, shares * p[:, None])
        result: Floats = np.minimum(1.0, np.where(allowed, tried, 1.0).min(axis=1, initial=1.0))
        return result

    gone = int((steps.adjusted <= alpha).sum())
    local = alpha / (count - np.minimum(steps.rank, gone))
    return Family(adjusted(ways[0]), adjusted(ways[1]), adjusted(ways[2]), local)


def simultaneous_level(count: int, level: float = 0.95) -> float:
    """Return the level of each of so many intervals that all cover at once with probability `level` (Bonferroni)."""
    if count < 1:
        raise ValueError(f"there must be at least one interval, got {count=}.")
    return 1 - (1 - level) / count


def _probabilities(p: npt.ArrayLike) -> Floats:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"p-values must be [m], between 0 and 1, got {values}.")
    return values
