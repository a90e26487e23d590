"""Batches: every sentence once, within the budget, little padding, and a function of (seed, epoch)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablab.transformer.data.batches import like_lengths
from ablab.transformer.data.steps import Epochs

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200)


def _sides(pairs):
    src, tgt = np.array(pairs, dtype=np.int64).T
    return src, tgt


@settings(max_examples=60, deadline=None)
@given(pairs=LENGTHS, seed=st.integers(0, 5), epoch=st.integers(0, 5), budget=st.integers(40, 400))
def test_an_epoch_has_each_sentence_once_within_the_budget(pairs, seed, epoch, budget):
    src, tgt = _sides(pairs)
    batches = Epochs(src, tgt, batch_tokens=budget, seed=seed).batches(epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(src)))
    for rows in batches:
        assert len(rows) * max(src[rows].max(), tgt[rows].max()) <= budget


def _batches(seed=1, epoch=0, budget=500):
    rng = np.random.default_rng(0)
    src, tgt = rng.integers(3, 30, size=(2, 2000))
    return [rows.tolist() for rows in Epochs(src, tgt, batch_tokens=budget, seed=seed).batches(epoch)]


def test_an_epoch_is_a_function_of_seed_and_epoch():
    assert _batches() == _batches()
    assert _batches(seed=1) != _batches(seed=2)
    assert _batches(epoch=0) != _batches(epoch=1)


def test_epochs_mix_which_sentences_meet():
    first, second = ({frozenset(rows) for rows in _batches(epoch=epoch)} for epoch in (0, 1))
    assert len(first & second) < len(first) / 10


def test_batches_of_an_epoch_are_not_ordered_by_length():
    rng = np.random.default_rng(0)
    src, tgt = rng.integers(3, 30, size=(2, 2000))
    widths = [src[rows].max() for rows in Epochs(src, tgt, batch_tokens=500, seed=1).batches(0)]
    assert abs(np.corrcoef(widths, np.arange(len(widths)))[0, 1]) < 0.3


def test_padding_share_counts_both_sides():
    epochs = Epochs(np.array([2, 4]), np.array([3, 3]), batch_tokens=100, seed=0)
    whole, cut = ([len(batches) for batches in map(epochs.batches, range(40))].index(size) for size in (1, 2))
    # Positions: 2 x 4 source and 2 x 3 target, or no padding at all; tokens: 6 and 6.
    assert epochs.padding_share(whole) == pytest.approx(1 - 12 / 14)
    assert epochs.padding_share(cut) == 0


def test_a_sentence_longer_than_the_budget_still_has_a_batch():
    batches = Epochs(np.array([5, 90]), np.array([5, 90]), batch_tokens=20, seed=0).batches(0)
    assert sorted(np.concatenate(batches).tolist()) == [0, 1]


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(1, 50), min_size=1, max_size=100), budget=st.integers(50, 300))
def test_decoding_batches_cover_all_rows_longest_first(lengths, budget):
    array = np.array(lengths)
    batches = list(like_lengths(array, budget))
    order = np.concatenate(batches)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    assert (np.diff(array[order]) <= 0).all()
    assert all(len(rows) * array[rows].max() <= budget for rows in batches)
