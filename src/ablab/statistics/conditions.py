"""Do the runs themselves show that a test's conditions fail? Independent seeds, whose noise is near normal and alike.

An arm may scatter wildly beside the others, and a run may fall far short of its own arm."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.paired import finite
from ablab.statistics.student import Floats

LEVEL = 0.02
"""Chance of each warning where the condition holds. benchmarks/calibration/worlds measures it, and what they catch."""

DRAWS = 4000
SEED = 20261126
"""Of simulated noise, fixed so that the same records give the same report."""


def in_two_groups(arms: Sequence[npt.ArrayLike]) -> bool:
    """Return whether the scores within arms fall into two groups, as where some seeds learn and others do not.

    arms: [seeds] each. An arm's scores are divided in two so that the groups scatter least; the statistic is the share
    of the scatter that is left within them, on average over arms of three seeds and more that scatter at all. Its
    distribution for normal noise is simulated; it depends neither on the arms' means nor on their scatter. Rounding
    makes groups, too: where an arm has ties, scores are spread over the steps to which all are rounded.
    """
    several = [np.asarray(scores, dtype=np.float64) for scores in arms]
    several = [scores for scores in several if scores.size > 2 and np.ptp(scores) > 0]
    if not several:
        return False
    if any(np.unique(scores).size < scores.size for scores in several):
        step, rng = np.diff(np.unique(np.concatenate(several))).min(), np.random.default_rng(SEED)
        several = [scores + rng.uniform(-step / 2, step / 2, scores.size) for scores in several]
    left = np.mean([_left_within(scores) for scores in several])
    return bool(left <= _least_left(tuple(sorted(scores.size for scores in several))))


def _left_within(scores: Floats) -> Floats:
    """Return the share of the sum of squares that the best division leaves within the two groups. scores: [..., n]."""
    ordered = np.sort(scores - scores.mean(axis=-1, keepdims=True), axis=-1)
    sizes, n = np.arange(1, ordered.shape[-1]), ordered.shape[-1]
    between = np.cumsum(ordered, axis=-1)[..., :-1] ** 2 * (1 / sizes + 1 / (n - sizes))
    return np.asarray(1 - between.max(axis=-1) / (ordered**2).sum(axis=-1))


@cache
def _least_left(sizes: tuple[int, ...]) -> float:
    rng = np.random.default_rng(SEED)
    left = sum(_left_within(rng.standard_normal((DRAWS, size))) for size in sizes)
    return float(np.quantile(left, LEVEL) / len(sizes))


def follow_the_order(arms: Sequence[npt.ArrayLike]) -> bool:
    """Return whether scores are like those of the seed before: folds or checkpoints in the place of seeds.

    arms: [seeds] each, of the same seeds in their order, five or more; fewer have too few orders to tell. A permutation
    test of the squared steps from seed to seed, standardised within arms (von Neumann 1941). All arms are permuted
    alike, so that it holds whatever the seeds have in common across arms.
    """
    scores = np.array([values for values in map(np.asarray, arms) if np.ptp(values) > 0], dtype=np.float64)
    if not scores.size or (n := scores.shape[1]) < 5:
        return False
    apart = scores - scores.mean(axis=1, keepdims=True)
    alike = (apart.T / (apart**2).sum(axis=1)) @ apart
    steps = np.diag(alike)[:, None] + np.diag(alike) - 2 * alike
    orders = _orders(n)
    found = steps[orders[:, :-1], orders[:, 1:]].sum(axis=1)
    return bool((found <= found[0] + 1e-9).mean() <= LEVEL)


@cache
def _orders(n: int) -> npt.NDArray[np.int64]:
    """Return orders of n seeds, the given one first: all of them, or as many as are drawn for other tests."""
    if n <= 6:
        return np.array(list(permutations(range(n))))
    rng = np.random.default_rng(SEED)
    return np.array([np.arange(n), *(rng.permutation(n) for _ in range(DRAWS - 1))])


class Shared(NamedTuple):
    """What seeds have in common across arms. `correlation`: of runs with the same seed; `p`: one-sided, in its sign."""

    correlation: float
    p: float

    @property
    def is_shown(self) -> bool:
        return self.p <= LEVEL


def shared(baseline: npt.ArrayLike, arms: Sequence[npt.ArrayLike]) -> Shared | None:
    """Estimate how runs of the baseline correlate with those of the other arms that have the same seed.

    baseline: [seeds]; arms: [seeds] each. The t test of one slope for all arms, with an intercept each and
    len(arms) (n - 1) - 1 degrees of freedom (analysis of covariance, Fisher 1932). None where nothing varies.
    """
    usual, others = np.asarray(baseline, dtype=np.float64), np.asarray(arms, dtype=np.float64)
    df = others.size - len(others) - 1
    x, y = usual - usual.mean(), others - others.mean(axis=1, keepdims=True)
    squares, products, total = len(y) * float(x @ x), float((y @ x).sum()), float((y**2).sum())
    if df < 1 or not squares > 0 or not total > 0:
        return None
    correlation = float(np.clip(products / (squares * total) ** 0.5, -1, 1))
    left = total - products**2 / squares  # at a correlation of 1 or -1 nothing is, but for rounding
    p = float(student.upper_tail(abs(products) / (squares * left / df) ** 0.5, df)) if left > 0 else 0.0
    return Shared(correlation, p)


Scores = TypeVar("Scores", bound=npt.ArrayLike)

WILD = 5.0
"""Ratio of an arm's standard deviation to that of the others from which it says nothing about their noise."""

FEWEST = 4
"""Degrees of freedom of the other arms below which their scatter is too uncertain to compare with."""


def of_the_others(arms: Sequence[npt.ArrayLike]) -> Floats:
    """Return the standard deviation of the other arms beside each arm, [arms]; nan where it is not known.

    arms: [seeds] each. It is the square root of the median of their variances, each divided by the median of chi-square
    over its degrees of freedom: one arm that scatters wildly must not hide another.
    """
    values = [finite(scores, "arms") for scores in arms]
    degrees = np.array([max(scores.size - 1, 0) for scores in values])
    several = degrees > 0
    found, count = np.full(len(values), np.nan), int(several.sum())
    variances = np.array([scores.var(ddof=1) for scores in values if scores.size > 1]) / medians(degrees[several])
    ordered, ranks = np.sort(variances), np.argsort(np.argsort(variances, kind="stable"), kind="stable")
    if count > 1:  # without the arm of rank r, the order has a gap there
        low, high = ((place := (count - 2 + up) // 2) + (ranks <= place) for up in (0, 1))
        found[several] = np.sqrt((ordered[low] + ordered[high]) / 2)
    return np.where((degrees.sum() - degrees >= FEWEST) & (found > 0), found, np.nan)


def ratios(arms: Sequence[npt.ArrayLike]) -> Floats:
    """Return the standard deviation of each arm, [seeds], in that of the others, [arms]; nan where it is not known."""
    values = [finite(scores, "arms") for scores in arms]
    own = np.array([scores.std(ddof=1) if scores.size > 1 else np.nan for scores in values])
    return np.asarray(own / of_the_others(values))


def steady(arms: Mapping[str, Scores]) -> dict[str, Scores]:
    """Return the arms that do not scatter wildly beside the others."""
    wild = ratios(list(arms.values())) > WILD
    return {name: scores for (name, scores), is_wild in zip(arms.items(), wild, strict=True) if not is_wild}


def medians(degrees: npt.NDArray[np.int64]) -> Floats:
    """Return the median of chi-square over its degrees of freedom."""
    from scipy.special import gammaincinv

    return np.asarray(2 * gammaincinv(degrees / 2, 0.5) / degrees)


FAR = 6.0
"""Distance from its arm, in standard deviations, from which a run nearly failed."""


def near_failures(arms: Mapping[str, npt.ArrayLike], *, higher_is_better: bool) -> dict[str, int]:
    """Return the index of the run that nearly failed, by arm; arms without one are left out.

    arms: [seeds] each, three or more. The worst run of an arm nearly failed if it is worse than the next by more than
    FAR standard deviations, both of the other arms and of the arm's other runs: where these scatter as widely, the arm
    does, and no single run failed.
    """
    scores = {name: finite(values, name) for name, values in arms.items()}
    found = {}
    for (name, values), usual in zip(scores.items(), of_the_others(list(scores.values())), strict=True):
        if values.size < 3:
            continue
        worst = int(np.argmin(values) if higher_is_better else np.argmax(values))
        rest = np.delete(values, worst)
        short = float(np.abs(rest - values[worst]).min())
        if short > FAR * usual and short > FAR * float(rest.std(ddof=1)):
            found[name] = worst
    return found
