"""The simulated test sets are what they say."""

import numpy as np
import pytest

from ablab.transformer.data.scoring import corpus_bleu, sentence_statistics
from benchmarks.calibration.noise import Noise, counted, simulated


def test_counts_are_sacrebleus():
    right = np.random.default_rng(0).random((40, 11)) < 0.7
    reference = [f"w{i}" for i in range(11)]
    hypotheses = [" ".join(w if ok else f"x{w}" for w, ok in zip(reference, row, strict=True)) for row in right]
    assert counted(right).tolist() == sentence_statistics(hypotheses, [" ".join(reference)] * 40)


def test_noise_is_of_the_size_of_real_runs():
    """Multi30k: BLEU 30 to 37; two seeds of one recipe differ by 0.64, of which 0.43 is from the sentences."""
    rng = np.random.default_rng(0)
    for noise, expected in ((Noise(), 0.64), (Noise(seed=0.0), 0.43)):
        scores = corpus_bleu(np.stack([simulated(rng, 10, 1000, noise)[0].sum(axis=1) for _ in range(25)]))
        assert 33 < scores.mean() < 41
        assert scores.std(axis=1, ddof=1).mean() * 2**0.5 == pytest.approx(expected, rel=0.15)
