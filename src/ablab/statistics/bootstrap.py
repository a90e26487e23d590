"""Seeds and sentences together: would the difference hold with other seeds, on another test set of the same kind?"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.bleu import corpus_bleu
from ablab.statistics.interval import Interval, check_level
from ablab.statistics.refusal import NotTestable
from ablab.statistics.sentences import Metric, differences, resampled_sums, stacked
from ablab.statistics.student import Floats

MINIMUM_SEEDS = 3
MINIMUM_SENTENCES = 200
"""Below these, benchmarks/calibration.py does not show the coverage that the interval claims."""


@dataclass(frozen=True)
class Crossed:
    """Arm less baseline. `from_seeds`, `from_sentences`: the two parts of the squared standard error, in squared
    units of the metric; the first is that of the paired t test. `df`: of the t distribution, from n - 1 seeds upwards.
    """

    n: int
    sentences: int
    resamples: int
    difference: float
    from_seeds: float
    from_sentences: float
    df: float
    interval: Interval
    p: float

    @property
    def standard_error(self) -> float:
        """Of the difference, over seeds and sentences."""
        return (self.from_seeds + self.from_sentences) ** 0.5


def crossed_bootstrap(
    arm: npt.ArrayLike,
    baseline: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    resamples: int = 10_000,
    level: float = 0.95,
    metric: Metric = corpus_bleu,
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

    Their sum estimates the variance of the mean difference without bias, but for the maximum. The interval is
    D +- t(df) sqrt(sum), with Satterthwaite's (1946) degrees of freedom: only the n - 1 of the seed part are few.
    """
    check_level(level)
    statistics = stacked(arm, baseline)
    _, seeds, count, _ = statistics.shape
    if seeds < MINIMUM_SEEDS:
        raise NotTestable(f"the crossed bootstrap needs at least {MINIMUM_SEEDS} seeds, there are {seeds}")
    if count < MINIMUM_SENTENCES:
        raise NotTestable(f"the crossed bootstrap needs at least {MINIMUM_SENTENCES} sentences, there are {count}")
    observed = differences(statistics.sum(axis=-2), metric)
    drawn = np.concatenate([differences(sums, metric) for sums in resampled_sums(statistics, resamples, rng)])
    from_seeds, from_sentences = _parts(observed, drawn)
    if from_seeds + from_sentences <= 1e-20:
        raise NotTestable("the difference varies neither with seeds nor with sentences: no noise to judge it by")
    total = from_seeds + from_sentences
    df = float(total**2 / (from_seeds**2 / (seeds - 1) + from_sentences**2 / (count - 1)))
    mean, error = float(observed.mean()), total**0.5
    half = student.quantile((1 + level) / 2, df) * error
    method = f"crossed bootstrap over {seeds} seeds and {count} sentences, {resamples} resamples, t with {df:.1f} df"
    interval = Interval(mean - half, mean + half, level, method)
    p = float(student.two_sided(mean / error, df))
    return Crossed(seeds, count, resamples, mean, from_seeds, from_sentences, df, interval, p)


def _parts(observed: Floats, drawn: Floats) -> tuple[float, float]:
    """Variance of the mean difference from seeds, and from sentences alone. observed: [seeds]; drawn: [b, seeds]."""
    seeds = observed.size
    from_seeds = float(observed.var(ddof=1)) / seeds
    interaction = float(drawn.var(axis=1, ddof=1).mean()) / seeds - from_seeds
    return from_seeds, max(0.0, float(drawn.mean(axis=1).var(ddof=1)) - interaction)
