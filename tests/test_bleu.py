"""BLEU from summed statistics is sacrebleu's BLEU."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from ablab.transformer.data.scoring import corpus_bleu, score

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "the", "of", ",", "."]), max_size=9).map(" ".join)


@given(st.lists(st.tuples(WORDS, WORDS.filter(bool)), min_size=1, max_size=6))
def test_equals_sacrebleu_on_random_text(pairs):
    """Short texts: orders without a match, without a total, empty hypotheses."""
    hypotheses, references = zip(*pairs, strict=True)
    scores = score(hypotheses, references)
    assert corpus_bleu(np.sum(scores.sentences, axis=0)) == pytest.approx(scores.bleu, rel=1e-12, abs=1e-12)


@given(st.lists(st.integers(0, 30), min_size=4, max_size=4), st.integers(0, 40), st.integers(1, 40))
def test_equals_sacrebleu_on_random_counts(matches, system, reference):
    totals = [max(0, system - n) for n in range(4)]
    matches = [min(m, t) for m, t in zip(matches, totals, strict=True)]
    expected = BLEU.compute_bleu(list(matches), list(totals), system, reference, smooth_method="exp").score
    assert corpus_bleu([system, reference, *matches, *totals]) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_many_at_once_are_each_alone():
    rng = np.random.default_rng(0)
    totals = rng.integers(50, 90, (3, 5, 1)) - np.arange(4)
    sums = np.concatenate([totals[..., :1], totals[..., :1] + 3, totals // 2 - np.arange(4) * 5, totals], axis=-1)
    together = corpus_bleu(sums)
    assert together.shape == (3, 5)
    assert all(together[i, j] == corpus_bleu(sums[i, j]) for i in range(3) for j in range(5))


def test_statistics_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"\[\.\.\., 10\]"):
        corpus_bleu(np.ones(9))
