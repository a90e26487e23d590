"""Epochs are those of the plain construction, bit for bit, and are counted without being made."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ablab.transformer.data import steps as module
from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.steps import Epochs, TrainingSteps
from tests.data import plain

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200)
SEEDS, NUMBERS = st.integers(0, 5), st.integers(0, 5)


def _agree(src, tgt, budget, seed, epoch):
    ours = Epochs(src, tgt, batch_tokens=budget, seed=seed)
    theirs = plain.epoch_batches(src, tgt, batch_tokens=budget, seed=seed, epoch=epoch)
    batches = ours.batches(epoch)
    assert [rows.tolist() for rows in batches] == [rows.tolist() for rows in theirs]
    assert {rows.dtype for rows in batches} == {rows.dtype for rows in theirs}
    assert ours.steps(epoch) == len(theirs)
    assert ours.padding_share(epoch) == plain.padding_share(theirs, src, tgt)


@settings(max_examples=300, deadline=None)
@given(pairs=LENGTHS, seed=SEEDS, epoch=NUMBERS, budget=st.integers(1, 400))
def test_an_epoch_is_that_of_the_plain_construction(pairs, seed, epoch, budget):
    """Also where sentences are longer than the budget."""
    src, tgt = np.array(pairs, dtype=np.int64).T
    _agree(src, tgt, budget, seed, epoch)


@pytest.mark.parametrize("budget", [300, 4096, 25_000])
def test_a_large_corpus_too(budget):
    rng = np.random.default_rng(0)
    src = np.clip(rng.lognormal(3, 0.7, size=50_000), 1, 400).astype(np.int64)
    tgt = np.clip(src + rng.integers(-8, 9, size=len(src)), 1, 400)
    for epoch in range(3):
        _agree(src, tgt, budget, 1, epoch)


@pytest.mark.parametrize("lengths", ["many", "huge"])
def test_lengths_of_every_kind(lengths, monkeypatch):
    """More combinations of lengths than sixteen bits count, or than a table holds."""
    rng = np.random.default_rng(0)
    src, tgt = rng.integers(1, 2000, size=(2, 80_000))
    if lengths == "huge":
        monkeypatch.setattr(module, "FEW", 0)
    _agree(src, tgt, 5000, 1, 0)


def _sentences(seed, count=300):
    rng = np.random.default_rng(seed)
    return Sentences.of([rng.integers(4, 50, size=rng.integers(1, 12)).tolist() for _ in range(count)])


def _steps(total=10_000):
    return TrainingSteps(_sentences(1), _sentences(2), batch_tokens=200, seed=3, micro_batches=1, total=total)


def test_a_resume_makes_no_epoch_but_its_own(monkeypatch):
    made = []
    whole = Epochs.batches
    monkeypatch.setattr(Epochs, "batches", lambda self, epoch: (made.append(epoch), whole(self, epoch))[1])
    steps = _steps()
    index = steps.steps_in(7) + 2
    steps.total = steps.steps_in(8)
    steps[index]
    assert made == [7]


def test_the_next_epoch_is_planned_meanwhile_and_equal(monkeypatch):
    by = {}
    whole = Epochs.batches

    def noted(self, epoch):
        by.setdefault(epoch, threading.current_thread())
        return whole(self, epoch)

    monkeypatch.setattr(Epochs, "batches", noted)
    steps, end = _steps(), _steps().steps_in(3)
    forwards = [steps[index] for index in range(end)]
    assert by[0] is threading.main_thread()
    assert threading.main_thread() not in (by[1], by[2])
    for index in (0, end // 2, end - 1):
        for ours, theirs in zip(forwards[index], _steps()[index], strict=True):
            assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_an_epoch_for_which_memory_was_short_is_made_when_it_is_due(monkeypatch):
    whole = Epochs.batches

    def short(self, epoch):
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError
        return whole(self, epoch)

    monkeypatch.setattr(Epochs, "batches", short)
    steps = _steps()
    begin = steps.steps_in(1)
    ours, theirs = ([at[index][0].src.tolist() for index in range(begin + 1)] for at in (steps, _steps()))
    assert ours == theirs
