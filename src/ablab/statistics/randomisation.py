"""Noise of the test set alone: could the very runs at hand differ so much by the luck of these sentences?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics.bleu import corpus_bleu
from ablab.statistics.refusal import NotTestable
from ablab.statistics.sentences import Metric, blocks, differences, exact, products, stacked
from ablab.statistics.student import Floats


@dataclass(frozen=True)
class Randomisation:
    """Arm less baseline, mean over seeds. `p`: two-sided, never below 1 / (trials + 1). Says nothing of other seeds."""

    n: int
    sentences: int
    trials: int
    difference: float
    p: float


def approximate_randomisation(
    arm: npt.ArrayLike,
    baseline: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    trials: int = 10_000,
    metric: Metric = corpus_bleu,
) -> Randomisation:
    """Swap the two sides of each sentence with probability 1/2 (Noreen 1989; Riezler & Maxwell 2005).

    arm, baseline: sufficient statistics [seeds, sentences, k], paired by seed and by sentence; one seed is enough. A
    sentence is swapped for all seeds together, since its difficulty is shared. p = (1 + trials in which the absolute
    difference is at least the observed one) / (1 + trials), which is valid with ties and for any number of trials
    (Phipson & Smyth 2010). sacrebleu's paired bootstrap is not used: it rejects a true null 10 % of the time at 5 %.
    Raises NotTestable when both sides have equal statistics on every sentence.
    """
    left, right = stacked(arm, baseline)
    return Swaps(left.shape[1], trials, rng).judge(left, right, metric)


class Swaps:
    """Which sentences are swapped in each trial; the same for every pair of arms that a report judges."""

    def __init__(self, sentences: int, trials: int, rng: np.random.Generator) -> None:
        signs = [(rng.integers(2, size=(size, sentences)) * 2 - 1).astype(np.int8) for size in blocks(trials)]
        self._signs = np.concatenate(signs)

    def judge(self, arm: npt.ArrayLike, baseline: npt.ArrayLike, metric: Metric = corpus_bleu) -> Randomisation:
        """As `approximate_randomisation`."""
        statistics = stacked(arm, baseline)
        _, seeds, count, _ = statistics.shape
        if (statistics[0] == statistics[1]).all():
            raise NotTestable("both sides score alike on every sentence: there is nothing to swap")
        observed = float(differences(statistics.sum(axis=-2), metric).mean())
        # Sums that are equal but for the order of rounding are ties.
        least = abs(observed) - 1e-9
        extreme = sum(
            int((np.abs(differences(sums, metric).mean(axis=-1)) >= least).sum()) for sums in self._swapped(statistics)
        )
        trials = len(self._signs)
        return Randomisation(seeds, count, trials, observed, (1 + extreme) / (1 + trials))

    def _swapped(self, statistics: Floats) -> Iterator[Floats]:
        """Blocks [b, 2, seeds, k] of sums after swapping: with signs of +-1, sides are (total +- signs @ gaps) / 2."""
        _, seeds, count, width = statistics.shape
        total = statistics.sum(axis=(0, 2))
        gaps = exact(np.ascontiguousarray(np.moveaxis(statistics[0] - statistics[1], 1, 0).reshape(count, -1)))
        for block in products(self._signs, gaps):
            gap = block.reshape(-1, seeds, width)
            yield np.stack([total + gap, total - gap], axis=1) / 2
