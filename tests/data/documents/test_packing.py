"""The laws of packed contexts, of their order, and of the masks over them."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ablab.transformer.data.documents.packing import IGNORED, PackedSteps
from ablab.transformer.data.documents.shards import Shard
from ablab.transformer.data.documents.tokenizers import Bytes
from ablab.transformer.model.language_model import PackedDocuments

END = Bytes.end
SHAPES = st.tuples(
    st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 17), st.integers(1, 100), st.integers(1, 4)
)


def _shard(lengths):
    """PackedDocuments whose tokens all differ, as far as bytes go: the first byte is the number of the document."""
    texts = ["".join(chr(32 + (number + place) % 90) for place in range(size)) for number, size in enumerate(lengths)]
    return Shard.of(Bytes(), texts)


def _steps(lengths, context, batch_tokens, parts=1, seed=1, total=1000):
    return PackedSteps(
        _shard(lengths), context=context, batch_tokens=batch_tokens, seed=seed, micro_batches=parts, total=total
    )


def _rows(steps, epoch):
    first, last = steps.steps_in(epoch), steps.steps_in(epoch + 1)
    return [part for index in range(first, last) for part in steps[index]]


def _segments(batch):
    """Yield the tokens that each document of a row reads, and those that it predicts."""
    for inputs, targets, documents in zip(batch.text, batch.labels, batch.documents, strict=True):
        for number in range(int(documents.max()) + 1):
            inside = (documents == number) & (targets != IGNORED)
            if inside.any():
                yield inputs[inside].tolist(), targets[inside].tolist()


@settings(max_examples=20)
@given(SHAPES)
def test_every_token_is_predicted_once_in_each_epoch(shape):
    steps = _steps(*shape)
    expected = Counter(steps.shard.tokens.tolist())
    for epoch in (0, 1):
        found = Counter(t for batch in _rows(steps, epoch) for t in batch.labels.flatten().tolist() if t != IGNORED)
        assert found == expected


@settings(max_examples=20)
@given(SHAPES)
def test_no_target_and_no_position_crosses_a_document(shape):
    """Each segment predicts a part of one document, from what stands before it there, or from an end."""
    steps = _steps(*shape)
    whole = [[END, *steps.shard.document(i).tolist(), END] for i in range(len(steps.shard))]
    pairs = Counter()
    for batch in _rows(steps, 0):
        for inputs, targets in _segments(batch):
            assert END not in inputs[1:]
            assert inputs[1:] == targets[:-1]
            assert any(
                [inputs[0], *targets] == one[at : at + len(targets) + 1] for one in whole for at in range(len(one))
            )
            pairs.update(zip(inputs, targets, strict=True))
    assert pairs == Counter(pair for one in whole for pair in pairwise(one))


@settings(max_examples=20)
@given(SHAPES)
def test_positions_begin_at_each_document_and_each_row(shape):
    for batch in _rows(_steps(*shape), 0):
        for documents, positions in zip(
            batch.documents.tolist(), PackedDocuments.of(batch.documents).place.tolist(), strict=True
        ):
            assert documents[0] == positions[0] == 0
            for i in range(1, len(documents)):
                is_same = documents[i] == documents[i - 1]
                assert positions[i] == (positions[i - 1] + 1 if is_same else 0)
                assert is_same or documents[i] == documents[i - 1] + 1


@settings(max_examples=20)
@given(SHAPES)
def test_padding_is_ignored_apart_and_counted(shape):
    steps = _steps(*shape)
    batches = _rows(steps, 0)
    for batch in batches:
        is_padding = batch.labels == IGNORED
        assert (batch.text[is_padding] == END).all()
        real = torch.where(is_padding, -1, batch.documents).amax(dim=1, keepdim=True)
        assert (batch.documents > real)[is_padding].all()
        assert batch.tokens == len(batch.real) == int((~is_padding).sum())
        assert (batch.labels.flatten()[batch.real] != IGNORED).all()
    share = 1 - sum(batch.tokens for batch in batches) / sum(batch.labels.numel() for batch in batches)
    assert steps.padding_share() == pytest.approx(share)


@settings(max_examples=20)
@given(SHAPES, st.integers(1, 5))
def test_micro_batches_divide_a_step_and_nothing_else(shape, parts):
    lengths, context, batch_tokens, _ = shape
    whole, cut = (_steps(lengths, context, batch_tokens, count) for count in (1, parts))
    for index in range(whole.steps_in(2)):
        (one,), several = whole[index], cut[index]
        assert len(several) == min(parts, len(one.text))
        assert one.tokens == sum(part.tokens for part in several)
        for name in ("text", "labels", "documents"):
            assert torch.equal(getattr(one, name), torch.cat([getattr(part, name) for part in several]))


@settings(max_examples=20)
@given(SHAPES, st.randoms(use_true_random=False))
def test_a_step_is_the_same_from_wherever_it_is_read(shape, random):
    """A resumed run begins in the middle of an epoch, with steps of its own."""
    straight = _steps(*shape)
    count = straight.steps_in(3)
    expected = [straight[index] for index in range(count)]
    for index in random.sample(range(count), min(count, 6)):
        for one, other in zip(expected[index], _steps(*shape)[index], strict=True):
            assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
        assert straight.epoch_of(index) == next(e for e in range(3) if index < straight.steps_in(e + 1))


def test_a_step_has_as_many_contexts_as_its_tokens():
    steps = _steps([30] * 100, 16, 64)
    assert len(steps) == 1000
    sizes = [sum(len(part.text) for part in steps[index]) for index in range(steps.steps_in(1))]
    assert set(sizes[:-1]) == {4}
    assert 1 <= sizes[-1] <= 4
    assert {len(part.text) for part in _steps([30] * 100, 16, 3)[0]} == {1}


def _texts(steps, epoch):
    return torch.cat([batch.labels for batch in _rows(steps, epoch)]).tolist()


def test_the_order_depends_on_seed_and_epoch_alone():
    lengths = list(range(5, 60))
    one, same, other = (_steps(lengths, 16, 64, seed=seed) for seed in (1, 1, 2))
    assert _texts(one, 0) == _texts(same, 0)
    assert _texts(one, 0) != _texts(one, 1) != _texts(other, 1)
    assert _texts(one, 0) != _texts(other, 0)
    finer = _steps(lengths, 16, 32, parts=2)
    assert _texts(finer, 0) == _texts(one, 0)  # whatever the steps


def test_a_text_of_one_document_is_cut_elsewhere_in_each_epoch():
    steps = _steps([4000], 500, 1000)
    starts = [{tuple(row) for row in _texts(steps, epoch)} for epoch in range(4)]
    assert len({frozenset(rows) for rows in starts}) == 4


@settings(max_examples=20)
@given(SHAPES)
def test_the_mask_is_causal_and_within_a_document(shape):
    batch = _rows(_steps(*shape), 0)[0]
    mask = PackedDocuments.of(batch.documents).visible
    rows, context = batch.documents.shape
    assert mask.shape == (rows, 1, context, context)
    documents = batch.documents.numpy()
    expected = (documents[:, :, None] == documents[:, None, :]) & np.tri(context, dtype=bool)
    assert np.array_equal(mask[:, 0].numpy(), expected)
    assert mask.any(dim=-1).all()


def test_mapped_and_small_ids_are_packed_as_others_are(tmp_path):
    shard = _shard([7, 3, 12])
    small = Shard(shard.tokens.astype(np.uint16), shard.starts, shard.sizes, shard.unknown)
    large = Shard(shard.tokens.astype(np.uint32), shard.starts, shard.sizes, shard.unknown)
    options = {"context": 5, "batch_tokens": 10, "seed": 3, "micro_batches": 1, "total": 9}
    for one, other in zip(PackedSteps(small, **options)[1], PackedSteps(large, **options)[1], strict=True):
        assert all(torch.equal(a, b) and a.dtype == torch.int64 for a, b in zip(one, other, strict=True))
