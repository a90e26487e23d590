"""Tests by resampling: of seeds and sentences together, and of sentences alone.

Seeds and sentences: would the difference hold with other seeds, on another test set of the same kind? Sentences alone:
could the runs at hand differ so much by chance of these sentences?
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.interval import Interval, NotTestable, check_level
from ablab.statistics.paired import ROUNDING
from ablab.statistics.products import BLOCK, AnyFloat, exact, products
from ablab.statistics.student import Floats

Metric = Callable[[npt.NDArray[AnyFloat]], Floats]
"""Sums of sufficient statistics, [..., k], to scores, [...]."""


def stacked(arm: npt.ArrayLike, baseline: npt.ArrayLike) -> Floats:
    """Stack the statistics of both, [seeds, sentences, k] each, to [2, seeds, sentences, k]. ValueError where shapes
    differ.
    """
    left, right = np.asarray(arm, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if left.shape != right.shape or left.ndim != 3:
        raise ValueError(
            "statistics must be [seeds, sentences, k] of the same seeds and sentences for both,"
            f" got {left.shape} and {right.shape}."
        )
    if not left.size:
        raise ValueError(f"statistics need at least one seed and one sentence, got shape {left.shape}.")
    return np.stack([left, right])


@dataclass(frozen=True)
class ResampledScores:
    """Scores of one side: under each seed on the test set itself, [seeds], and on every resample of it, [b, seeds]."""

    observed: Floats
    drawn: Floats


class Resamples:
    """Bootstrap resamples of the sentences, drawn with replacement, with the same draws for all runs (Koehn 2004).

    How often each sentence was drawn is a row of weights; its product with the statistics of the runs is most of the
    work, so a report of many arms draws once and scores each side once.
    """

    def __init__(self, sentences: int, resamples: int, rng: np.random.Generator) -> None:
        self.sentences = sentences
        self._weights = np.concatenate([_weights(sentences, size, rng) for size in blocks(resamples)])

    def scores(self, statistics: npt.ArrayLike, metric: Metric) -> ResampledScores:
        """Score one side from its statistics, [seeds, sentences, k]."""
        values = exact(np.asarray(statistics))
        count = values.shape[1]
        if count != self.sentences:
            raise ValueError(f"the draws are of {self.sentences} sentences, the statistics of {count}.")
        drawn = products(self._weights, values, lambda sums: np.ascontiguousarray(metric(sums)))
        return ResampledScores(metric(values.sum(axis=1, dtype=np.float64)), np.concatenate(list(drawn)))


def blocks(total: int) -> Iterator[int]:
    """Yield block sizes that add up to the total."""
    if total < 1:
        raise ValueError(f"there must be at least one resample, got {total}.")
    yield from (min(BLOCK, total - begun) for begun in range(0, total, BLOCK))


def _weights(count: int, resamples: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Draw how often each sentence occurs in each resample; more than 255 times does not happen."""
    drawn = rng.integers(count, size=(resamples, count)) + count * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * count).reshape(resamples, count).astype(np.uint8)


MINIMUM_SEEDS = 3
MINIMUM_SENTENCES = 200
"""Below these, benchmarks/calibration does not show the coverage that the interval claims."""


@dataclass(frozen=True)
class Crossed:
    """Result of the crossed bootstrap, arm less baseline.

    `from_seeds`, `from_sentences`: the two parts of the squared standard error, in squared units of the metric; the
    first is that of the paired t test. `p`: two-sided, uncorrected, of the same method as the interval.
    """

    difference: float
    from_seeds: float
    from_sentences: float
    interval: Interval
    p: float

    @property
    def standard_error(self) -> float:
        """Standard error of the difference, over seeds and sentences."""
        return (self.from_seeds + self.from_sentences) ** 0.5


def crossed_bootstrap(
    arm: npt.ArrayLike,
    baseline: npt.ArrayLike,
    rng: np.random.Generator,
    metric: Metric,
    *,
    resamples: int = 10_000,
    level: float = 0.95,
) -> Crossed:
    """Bootstrap over sentences and seeds, crossed: every run sees the same resample of sentences (Owen 2007).

    arm, baseline: sufficient statistics [seeds, sentences, k], paired by seed and by sentence. Raises NotTestable below
    3 seeds or 200 sentences, or when nothing varies.

    With D_s(w) the difference under seed s on a resample w, its mean over s written D(w), n seeds, and s^2(w) the
    sample variance of D_s(w) over seeds, resampling n seeds given w has the variance (n - 1) / n * s^2(w) / n exactly,
    so it is computed and not drawn. As it stands the crossed bootstrap is wrong twice at small n. Its seed part is too
    small by (n - 1) / n, hence s^2 itself. And it counts the interaction of seeds and sentences three times (Owen 2007,
    theorem 3; Owen & Eckles 2012 call this mildly conservative), which for trained models is most of what seeds vary
    by. The bootstrap tells its size, since resampling adds it once more to s^2(w):

        from_seeds     = s^2 / n                                         seeds, and the interaction once
        interaction    = (mean of s^2(w) - s^2) / n
        from_sentences = max(0, variance of D(w) - interaction)          sentences alone

    Their sum estimates the variance of the mean difference without bias, but for the maximum. Only the seeds are few,
    so the interval is D +- c sqrt(sum), where c is the mean of the t quantiles with n - 1 and with (sentences - 1)
    degrees of freedom, weighted by the two parts (Cochran 1964). Satterthwaite's (1946) degrees of freedom, the more
    usual choice, reject a true null up to 7.8 % of the time with 3 seeds and 12.8 % with 2; Cochran's 2.9 to 5.0 % from
    3 seeds on, whatever the sizes of the parts.
    """
    statistics = stacked(arm, baseline)
    count = statistics.shape[2]
    drawn = Resamples(count, resamples, rng)
    return crossed(*(drawn.scores(side, metric) for side in statistics), sentences=count, level=level)


def crossed(arm: ResampledScores, baseline: ResampledScores, *, sentences: int, level: float = 0.95) -> Crossed:
    """Compute `crossed_bootstrap` from scores on equal draws: a report of many arms scores their baseline once."""
    check_level(level)
    resamples, seeds = arm.drawn.shape
    if seeds < MINIMUM_SEEDS:
        raise NotTestable(f"the crossed bootstrap needs at least {MINIMUM_SEEDS} seeds, not {seeds}")
    if sentences < MINIMUM_SENTENCES:
        raise NotTestable(f"the crossed bootstrap needs at least {MINIMUM_SENTENCES} test items, not {sentences}")
    observed = arm.observed - baseline.observed
    from_seeds, from_sentences = _parts(observed, arm.drawn - baseline.drawn)
    size = float(np.abs([arm.observed, baseline.observed]).max())
    if from_seeds + from_sentences <= (ROUNDING * size) ** 2:
        raise NotTestable("the difference varies neither with seeds nor with test items: no noise to judge it by")
    few = from_seeds / (from_seeds + from_sentences)
    mean, error = float(observed.mean()), (from_seeds + from_sentences) ** 0.5
    half = _critical(1 - level, few, seeds, sentences) * error
    method = f"crossed bootstrap over {seeds} seeds and {sentences} test items, {resamples} resamples"
    interval = Interval(mean - half, mean + half, level, method)
    p = _p(abs(mean) / error, few, seeds, sentences)
    return Crossed(mean, from_seeds, from_sentences, interval, p)


def _critical(p: float, few: float, seeds: int, sentences: int) -> float:
    """Return the value that |D| / error exceeds with probability about p; few: the share of the variance from seeds."""
    by_seeds, by_sentences = (student.quantile(1 - p / 2, n - 1) for n in (seeds, sentences))
    return few * by_seeds + (1 - few) * by_sentences


def _p(size: float, few: float, seeds: int, sentences: int) -> float:
    """Return the p whose critical value is this size; not below 1e-15, where quantiles are no longer exact."""
    from scipy.optimize import brentq

    least = 1e-15
    if size >= _critical(least, few, seeds, sentences):
        return least
    return float(brentq(lambda p: _critical(p, few, seeds, sentences) - size, least, 1.0, xtol=1e-15, rtol=1e-10))


def _parts(observed: Floats, drawn: Floats) -> tuple[float, float]:
    """Variance of the mean difference from seeds, and from sentences alone. observed: [seeds]; drawn: [b, seeds]."""
    seeds = observed.size
    from_seeds = float(observed.var(ddof=1)) / seeds
    interaction = float(drawn.var(axis=1, ddof=1).mean()) / seeds - from_seeds
    return from_seeds, max(0.0, float(drawn.mean(axis=1).var(ddof=1)) - interaction)


class Swaps:
    """Approximate randomisation: in each trial, the two sides of each sentence are swapped with probability 1/2 (Noreen
    1989; Riezler & Maxwell 2005), the same ones for every pair of arms that a report compares.

    A sentence is swapped for all seeds together, since its difficulty is shared. p = (1 + trials in which the absolute
    difference is at least the observed one) / (1 + trials), which is valid with ties and for any number of trials
    (Phipson & Smyth 2010). It says nothing of other seeds. sacrebleu's paired bootstrap is not used: it rejects a true
    null 10 % of the time at 5 %.
    """

    def __init__(self, sentences: int, trials: int, rng: np.random.Generator) -> None:
        signs = [(rng.integers(2, size=(size, sentences)) * 2 - 1).astype(np.int8) for size in blocks(trials)]
        self._signs = np.concatenate(signs)

    def judge(self, arm: npt.ArrayLike, baseline: npt.ArrayLike, metric: Metric) -> float:
        """Return the two-sided p of the mean difference over seeds of one pair of arms, at least 1 / (trials + 1).

        arm, baseline: sufficient statistics [seeds, sentences, k], paired by seed and by sentence; one seed is enough.
        Raises NotTestable when both sides have equal statistics on every sentence.
        """
        statistics = stacked(arm, baseline)
        if (statistics[0] == statistics[1]).all():
            raise NotTestable("both sides score alike on every test item: there is nothing to swap")
        ours, theirs = statistics.sum(axis=-2)
        scores = np.stack([metric(ours), metric(theirs)])
        observed = float((scores[0] - scores[1]).mean())
        # Differences that are equal but for the order of rounding are ties.
        least = abs(observed) - ROUNDING * float(np.abs(scores).max())
        half = np.asfortranarray(statistics.sum(axis=(0, 2)) / 2)  # laid out as the products are

        def extreme(block: npt.NDArray[AnyFloat]) -> int:
            """Count the trials as far apart: by signs of +-1, the sums of the two sides are (total +- gaps) / 2."""
            gaps = block / 2.0  # exact: sums of counts, halved
            apart = (metric(half + gaps) - metric(half - gaps)).mean(axis=-1)
            return int((np.abs(apart) >= least).sum())

        found = sum(products(self._signs, exact(statistics[0] - statistics[1]), extreme))
        return (1 + found) / (1 + len(self._signs))
