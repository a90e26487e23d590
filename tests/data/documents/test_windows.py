"""Evaluation scores each token once, in the order of the documents whatever that of the windows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablab.transformer.data.documents.packing import IGNORED
from ablab.transformer.data.documents.shards import Shard
from ablab.transformer.data.documents.tokenizers import Bytes
from ablab.transformer.data.documents.windows import windows
from ablab.transformer.model.language_model import PackedDocuments

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=20)


def _shard(lengths):
    return Shard.of(Bytes(), ["".join(chr(33 + place % 90) for place in range(size)) for size in lengths])


@settings(max_examples=20)
@given(LENGTHS, st.integers(1, 20), st.integers(1, 200), st.integers(1, 25) | st.none())
def test_each_token_is_scored_exactly_once(lengths, context, batch_tokens, stride):
    shard = _shard(lengths)
    scored = [[] for _ in lengths]
    for window in windows(shard, context=context, batch_tokens=batch_tokens, stride=stride):
        batch = window.packed
        assert batch.text.shape[1] <= context
        assert len(batch.text) == 1 or batch.text.numel() <= batch_tokens
        of = np.full(batch.labels.numel(), -1)
        of[batch.real] = window.of
        for row, numbers in enumerate(of.reshape(batch.labels.shape)):
            (number,) = set(numbers[numbers >= 0].tolist())
            tokens, inputs = ([256, *shard.document(number).tolist(), 256], batch.text[row].tolist())
            for column in np.flatnonzero(numbers >= 0).tolist():
                place = len(_before(tokens, inputs, column, batch.labels[row, column]))
                scored[number].append(place)
    assert [sorted(places) for places in scored] == [list(range(1, size + 2)) for size in lengths]


def _before(tokens, inputs, column, target):
    """Return what stands before a target, which is the only place where the row's text occurs with it."""
    read = [*inputs[: column + 1], int(target)]
    places = [end for end in range(len(read), len(tokens) + 1) if tokens[end - len(read) : end] == read]
    assert len(places) == 1
    return tokens[: places[0] - 1]


@settings(max_examples=20)
@given(LENGTHS, st.integers(1, 20), st.integers(1, 20))
def test_sums_by_document_are_those_of_the_documents_one_by_one(lengths, context, stride):
    shard = _shard(lengths)

    def sums(of, chosen):
        found = np.zeros(len(of))
        for window in windows(of, context=context, batch_tokens=chosen, stride=stride):
            nats = window.packed.labels.flatten()[window.packed.real].numpy() * 0.5
            found += np.bincount(window.of.numpy(), weights=nats, minlength=len(of))
        return found

    single = [sums(Shard.of(Bytes(), [bytes(shard.document(i).tolist()).decode()]), 1)[0] for i in range(len(shard))]
    assert sums(shard, 100).tolist() == single


def test_a_stride_gives_each_token_as_much_before_it():
    shard = _shard([40])
    for window in windows(shard, context=16, batch_tokens=16, stride=4):
        scored = window.packed.labels[0] != IGNORED
        begin = int(scored.nonzero()[0])
        assert begin in (0, 12) or int(scored.sum()) < 4


def test_the_longest_windows_come_first():
    widths = [window.packed.text.shape[1] for window in windows(_shard([3, 30, 9]), context=12, batch_tokens=12)]
    assert widths == sorted(widths, reverse=True)


def test_a_document_that_fits_is_read_whole():
    (window,) = windows(_shard([5, 5]), context=6, batch_tokens=100)
    assert window.packed.tokens == 12
    assert window.packed.text[:, 0].tolist() == [256, 256]
    assert PackedDocuments.of(window.packed.documents).place.tolist() == [list(range(6))] * 2
    assert not window.packed.documents.any()
    with pytest.raises(StopIteration):
        next(windows(Shard.of(Bytes(), []), context=6, batch_tokens=100))
