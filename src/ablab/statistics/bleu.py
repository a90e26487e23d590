"""Corpus BLEU of many resamples at once, from sums of sacrebleu's sufficient statistics."""

import numpy as np
import numpy.typing as npt

from ablab.statistics.student import Floats

ORDERS = 4
WIDTH = 2 + 2 * ORDERS
"""System length, reference length, 4 n-gram matches, 4 n-gram totals: as records keep them per sentence."""


def corpus_bleu(sums: npt.ArrayLike) -> Floats:
    """BLEU in 0..100 (Papineni et al. 2002) as sacrebleu 2.6 scores a corpus by default: smooth:exp, eff:no.

    sums: [..., 10], the statistics summed over the sentences of a corpus; the result is [...]. exp smoothing: the k-th
    order without a match counts as 1 / (2^k total) matches. Without any match, or without a 4-gram, BLEU is 0.
    """
    values = np.asarray(sums, dtype=np.float64)
    if values.ndim < 1 or values.shape[-1] != WIDTH:
        raise ValueError(f"sums must be [..., {WIDTH}], got shape {values.shape}.")
    # Statistics first: numpy reduces a long last axis much faster than one of four.
    system, reference, *counts = np.ascontiguousarray(np.moveaxis(values, -1, 0))
    matches, totals = np.stack(counts[:ORDERS]), np.stack(counts[ORDERS:])
    scored = (matches > 0).any(axis=0) & (totals > 0).all(axis=0) & (system > 0)
    if not (matches > 0).all():
        matches = np.where(matches > 0, matches, 0.5 ** np.cumsum(matches == 0, axis=0))
    log_precision = np.log((matches / np.where(totals > 0, totals, 1.0)).prod(axis=0)) / ORDERS
    log_brevity = np.minimum(0.0, 1.0 - reference / np.where(system > 0, system, 1.0))
    score: Floats = np.where(scored, 100 * np.exp(log_precision + log_brevity), 0.0)
    return score
