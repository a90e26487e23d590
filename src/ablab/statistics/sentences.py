"""Sufficient statistics of several runs on one test set, and the scores of many resamples of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
        drawn = [np.ascontiguousarray(metric(sums)) for sums in products(self._weights, values)]
        return ResampledScores(metric(values.sum(axis=1, dtype=np.float64)), np.concatenate(drawn))


def blocks(total: int) -> Iterator[int]:
    """Yield block sizes that add up to the total."""
    if total < 1:
        raise ValueError(f"there must be at least one resample, got {total}.")
    yield from (min(BLOCK, total - begun) for begun in range(0, total, BLOCK))


def _weights(count: int, resamples: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Draw how often each sentence occurs in each resample; more than 255 times does not happen."""
    drawn = rng.integers(count, size=(resamples, count)) + count * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * count).reshape(resamples, count).astype(np.uint8)
