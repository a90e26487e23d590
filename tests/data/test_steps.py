"""Training data by step: any step can be asked for, alone, in any order."""

import numpy as np
import pytest
import torch

from ablab.transformer.data.batches import Sentences, collate
from ablab.transformer.data.steps import TrainingSteps
from ablab.transformer.model.tokens import BOS, EOS, PAD


def _sentences(seed, count=300):
    rng = np.random.default_rng(seed)
    return Sentences.of([rng.integers(4, 50, size=rng.integers(1, 12)).tolist() for _ in range(count)])


def _steps(**changes):
    options = {"batch_tokens": 200, "seed": 3, "micro_batches": 1, "total": 10_000, **changes}
    return TrainingSteps(_sentences(1), _sentences(2), **options)


def test_collate_shifts_the_target_and_pads_at_the_end():
    src = Sentences.of([[5, 6], [7]])
    tgt = Sentences.of([[8], [9, 10]])
    batch = collate(src, tgt, np.array([0, 1]))
    assert batch.src.tolist() == [[5, 6, EOS], [7, EOS, PAD]]
    assert batch.tgt.tolist() == [[BOS, 8, PAD], [BOS, 9, 10]]
    assert batch.labels.tolist() == [[8, EOS, PAD], [9, 10, EOS]]
    assert batch.tokens == 5


def test_padded_rows_give_back_the_sentences():
    sentences = _sentences(5, count=40)
    rows = np.array([3, 39, 0, 17])
    for row, ids in zip(rows, sentences.padded(rows), strict=True):
        start, end = sentences.offsets[row : row + 2]
        assert ids[: end - start].tolist() == sentences.tokens[start:end].tolist()
        assert (ids[end - start :] == PAD).all()


def test_a_step_is_the_same_whatever_was_asked_before():
    forwards, backwards = _steps(), _steps()
    asked = [0, 5, 40, 77]
    one = {index: forwards[index] for index in asked}
    other = {index: backwards[index] for index in reversed(asked)}
    for index in asked:
        for a, b in zip(one[index], other[index], strict=True):
            assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_an_epoch_ends_where_the_next_begins():
    steps = _steps()
    boundary = steps.steps_in(2)
    assert steps.epoch_of(boundary - 1) == 1
    assert steps.epoch_of(boundary) == 2
    sentences = sum(len(batch.src) for index in range(steps.steps_in(1), boundary) for batch in steps[index])
    assert sentences == len(steps.src)


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_micro_batches_hold_the_same_sentences(parts):
    whole, cut = _steps()[4], _steps(micro_batches=parts)[4]
    assert len(cut) == min(parts, len(whole[0].src))

    def sentences(batches):
        return sorted(
            (tuple(t for t in src if t != PAD), tuple(t for t in labels if t != PAD))
            for batch in batches
            for src, labels in zip(batch.src.tolist(), batch.labels.tolist(), strict=True)
        )

    assert sentences(cut) == sentences(whole)


def test_the_seed_changes_the_order_only():
    one, other = _steps(seed=1), _steps(seed=2)
    rows = [
        sorted(tuple(row) for i in range(s.steps_in(1)) for b in s[i] for row in map(_words, b.src.tolist()))
        for s in (one, other)
    ]
    assert rows[0] == rows[1]
    assert one[0][0].src.tolist() != other[0][0].src.tolist()


def _words(row):
    return [token for token in row if token != PAD]
