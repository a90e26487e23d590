"""Sufficient statistics of several runs on one test set, and the scores of many resamples of it."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from ablab.statistics.bleu import corpus_bleu
from ablab.statistics.student import Floats

Metric = Callable[[Floats], Floats]
"""Sums of sufficient statistics, [..., k], to scores, [...]."""

BLOCK = 500
"""Resamples at a time: with 2,000 sentences their weights take 8 MB."""


def stacked(arm: npt.ArrayLike, baseline: npt.ArrayLike) -> Floats:
    """Statistics of both, [seeds, sentences, k] each, as one array [2, seeds, sentences, k]; ValueError if unlike."""
    left, right = np.asarray(arm, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if left.shape != right.shape or left.ndim != 3:
        raise ValueError(
            "statistics must be [seeds, sentences, k] of the same seeds and sentences for both,"
            f" got {left.shape} and {right.shape}."
        )
    if not left.size:
        raise ValueError(f"statistics need at least one seed and one sentence, got shape {left.shape}.")
    return np.stack([left, right])


def differences(sums: Floats, metric: Metric = corpus_bleu) -> Floats:
    """Arm less baseline under each seed: [..., 2, seeds, k] to [..., seeds]."""
    scores = metric(sums)
    result: Floats = scores[..., 0, :] - scores[..., 1, :]
    return result


def resampled_sums(statistics: Floats, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Blocks [b, ...] of sums over sentences drawn with replacement, the same draw for all runs (Koehn 2004).

    statistics: [..., sentences, k]. How often each sentence was drawn is a row of weights; its product with the
    statistics of all runs is all the work.
    """
    count = statistics.shape[-2]
    columns = np.moveaxis(statistics, -2, 0)
    flat = np.ascontiguousarray(columns.reshape(count, -1))
    for size in blocks(resamples):
        drawn = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count).astype(np.float64)
        yield (weights @ flat).reshape(size, *columns.shape[1:])


def blocks(total: int) -> Iterator[int]:
    """Sizes that add up to the total."""
    if total < 1:
        raise ValueError(f"there must be at least one resample, got {total}.")
    yield from (min(BLOCK, total - begun) for begun in range(0, total, BLOCK))
