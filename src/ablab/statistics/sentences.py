"""Sufficient statistics of several runs on one test set, and the scores of many resamples of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics.products import BLOCK, AnyFloat, exact, products
from ablab.statistics.student import Floats

ORDERS = 4
WIDTH = 2 + 2 * ORDERS
"""System length, reference length, 4 n-gram matches, 4 n-gram totals: the layout of a sentence in the records."""


def corpus_bleu(sums: npt.ArrayLike) -> Floats:
    """BLEU in 0..100 (Papineni et al. 2002) as sacrebleu 2.6 scores a corpus by default: smooth:exp, eff:no.

    sums: [..., 10], the statistics summed over the sentences of a corpus; the result is [...]. exp smoothing: the k-th
    order without a match counts as 1 / (2^k total) matches. Without any match, or without a 4-gram, BLEU is 0.
    """
    values = np.asarray(sums, dtype=np.float64)
    if values.ndim < 1 or values.shape[-1] != WIDTH:
        raise ValueError(f"sums must be [..., {WIDTH}], got shape {values.shape}.")
    # Statistics first: numpy reduces a long last axis much faster than one of four.
    first = np.moveaxis(values, -1, 0)
    if values.strides[-1] != max(values.strides):
        first = np.ascontiguousarray(first)
    system, reference, matches, totals = first[0], first[1], first[2 : 2 + ORDERS], first[2 + ORDERS :]
    scored = (matches > 0).any(axis=0) & (totals > 0).all(axis=0) & (system > 0)
    if not (matches > 0).all():
        matches = np.where(matches > 0, matches, 0.5 ** np.cumsum(matches == 0, axis=0))
    log_precision = np.log((matches / np.where(totals > 0, totals, 1.0)).prod(axis=0)) / ORDERS
    log_brevity = np.minimum(0.0, 1.0 - reference / np.where(system > 0, system, 1.0))
    score: Floats = np.where(scored, 100 * np.exp(log_precision + log_brevity), 0.0)
    return score


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

    def scores(self, statistics: npt.ArrayLike, metric: Metric = corpus_bleu) -> ResampledScores:
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
