"""The batches of each epoch, a pure function of sentence lengths, seed and epoch, and those of each step of training.

Sorted by length, every epoch is the same row of lengths. An epoch decides only which of equally long pairs comes first,
where the first batch ends, and the order of the batches. Batches are counted without making any.
"""

import abc
import threading
from bisect import bisect_right
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from torch.utils.data import Dataset

from ablab.seeding import derive
from ablab.transformer.data.batches import Batch, Index, MicroBatch, Sentences, collate

M = TypeVar("M", bound=MicroBatch)

FEW = 1 << 26
"""Combinations of two lengths that are counted in a table; more are sorted."""


class Epochs:
    """Every sentence once in each epoch, grouped by length, batches in random order.

    A batch holds at most `batch_tokens` padded tokens on its larger side, or one longer sentence. The grouping of
    equally long sentences and the order of the batches differ from epoch to epoch.
    """

    def __init__(self, src_lengths: Index, tgt_lengths: Index, *, batch_tokens: int, seed: int) -> None:
        self.batch_tokens, self.seed, self.pairs = batch_tokens, seed, len(src_lengths)
        self._ranks, self._lengths, self._counts = _ranked(src_lengths, tgt_lengths)
        larger = self._lengths.max(axis=0)
        self._widths, first_rank = np.unique(larger, return_index=True)
        self._run_begins = np.cumsum([0, *self._counts])[first_rank]  # of the sentences of equal width, sorted by it
        self._run_ends = np.append(self._run_begins[1:], self.pairs)

    def batches(self, epoch: int) -> list[Index]:
        """Return the rows of each batch."""
        rng, shuffled, first = self._drawn(epoch)
        # The larger side first, which fills the budget; the sort is stable, so that ties stay shuffled.
        order = shuffled[np.argsort(self._ranks[shuffled], kind="stable")]
        begins = self._begins(first).tolist()
        batches = [order[begin:end] for begin, end in zip(begins, [*begins[1:], self.pairs], strict=True)]
        return [batches[i] for i in rng.permutation(len(batches)).tolist()]

    def steps(self, epoch: int) -> int:
        """Return the number of batches, which takes a fraction of the time of making them."""
        return len(self._begins(self._drawn(epoch)[2]))

    def padding_share(self, epoch: int) -> float:
        """Return the share of source and target positions that are padding."""
        begins = self._begins(self._drawn(epoch)[2])
        sizes = np.diff(np.append(begins, self.pairs))
        widths = sum(np.maximum.reduceat(np.repeat(side, self._counts), begins) for side in self._lengths)
        tokens = (self._lengths * self._counts).sum()
        return float(1 - tokens / (sizes * widths).sum())

    def _drawn(self, epoch: int) -> tuple[np.random.Generator, Index, int]:
        """Return the epoch's generator, its shuffled rows, and the size of its first batch.

        A first batch of random size moves every later boundary, so that batches differ even in a small corpus.
        """
        rng = np.random.default_rng(derive(self.seed, "order", epoch))
        shuffled = rng.permutation(self.pairs)
        return rng, shuffled, int(self.batch_tokens * rng.uniform())

    def _begins(self, first: int) -> Index:
        """Return where each batch begins in the sentences sorted by length; the first holds `first` tokens."""
        found = [np.zeros(1, dtype=np.int64)]
        begin = self._end(0, first)
        while begin < self.pairs:
            run = bisect_right(self._run_begins, begin) - 1
            size = max(1, self.batch_tokens // int(self._widths[run]))
            whole = begin + (self._run_ends[run] - begin) // size * size  # batches of one width, all of one size
            found.append(np.arange(begin, whole, size))
            if whole < self._run_ends[run]:
                found.append(np.array([whole]))
                whole = self._end(whole, self.batch_tokens)
            begin = int(whole)
        return np.concatenate(found)

    def _end(self, begin: int, budget: int) -> int:
        """Return where the batch that begins there ends: before the sentence by which it would exceed the budget."""
        for run in range(bisect_right(self._run_begins, begin) - 1, len(self._widths)):
            end = max(begin + 1, int(self._run_begins[run]), begin + budget // int(self._widths[run]))
            if end < self._run_ends[run]:
                return end
        return self.pairs


def _ranked(src: Index, tgt: Index) -> tuple[npt.NDArray[np.unsignedinteger], Index, Index]:
    """Rank pairs by their larger side, then by source and target length.

    Returns the rank of each pair, the two lengths of each rank [2, ranks], and the number of pairs of each rank.
    """
    base = int(tgt.max()) + 1
    keys = src * base + tgt
    present = np.flatnonzero(np.bincount(keys)) if keys.max() < FEW else np.unique(keys)
    sides = np.stack(np.divmod(present, base))
    by_length = np.lexsort((sides[1], sides[0], sides.max(axis=0)))
    # Of sixteen bits where they suffice: numpy sorts those in one pass.
    rank_of = np.empty(len(present), dtype=np.min_scalar_type(len(present)))
    rank_of[by_length] = np.arange(len(present))
    ranks = rank_of[np.searchsorted(present, keys)]
    return ranks, sides[:, by_length], np.bincount(ranks, minlength=len(present))


class EpochPlan(Protocol):
    """What is known of each epoch before its batches are made."""

    def steps(self, epoch: int) -> int:
        """Return the number of optimiser steps."""

    def padding_share(self, epoch: int) -> float:
        """Return the share of positions that are padding."""


class Steps(Dataset[list[M]], abc.ABC, Generic[M]):
    """The micro-batches by optimiser step: steps[i] belongs to step i + 1, in whatever order steps are read.

    `total`: number of steps of the training, which may be lowered.
    """

    def __init__(self, plan: EpochPlan, total: int) -> None:
        self.total = total
        self._plan = plan
        self._ends = [0]  # number of steps before each epoch, as far as computed

    def __len__(self) -> int:
        return self.total

    @abc.abstractmethod
    def __getitem__(self, index: int) -> list[M]:
        """Return the micro-batches of step index + 1."""

    def epoch_of(self, index: int) -> int:
        """Return the epoch, counted from 0, of step index + 1."""
        while self._ends[-1] <= index:
            self._ends.append(self._ends[-1] + self._plan.steps(len(self._ends) - 1))
        return bisect_right(self._ends, index) - 1

    def steps_in(self, epochs: int) -> int:
        """Return the number of optimiser steps in the first `epochs` epochs."""
        while len(self._ends) <= epochs:
            self.epoch_of(self._ends[-1])
        return self._ends[epochs]

    def padding_share(self) -> float:
        """Return the share of padded positions in the first epoch."""
        return self._plan.padding_share(0)


AnySteps = Steps[Any]
"""The steps of any task."""


class TrainingSteps(Steps[Batch]):
    """The steps of a training on sentence pairs."""

    def __init__(
        self, src: Sentences, tgt: Sentences, *, batch_tokens: int, seed: int, micro_batches: int, total: int
    ) -> None:
        self.src, self.tgt = src, tgt
        self.micro_batches = micro_batches
        self._epochs = Epochs(src.lengths, tgt.lengths, batch_tokens=batch_tokens, seed=seed)
        super().__init__(self._epochs, total)
        self._epoch: tuple[int, list[Index]] = (-1, [])
        self._next: _Planned | None = None

    def __getitem__(self, index: int) -> list[Batch]:
        epoch = self.epoch_of(index)
        rows = self._batches(epoch)[index - self._ends[epoch]]
        parts = np.array_split(rows, min(self.micro_batches, len(rows)))
        return [collate(self.src, self.tgt, part) for part in parts]

    def _batches(self, epoch: int) -> list[Index]:
        """Return the epoch's batches, and begin to plan the next epoch's while these are trained on."""
        if self._epoch[0] != epoch:
            planned, self._next = self._next, None
            found = planned.batches() if planned is not None and planned.epoch == epoch else None
            self._epoch = (epoch, self._epochs.batches(epoch) if found is None else found)
            if self.total > self._ends[epoch] + len(self._epoch[1]):
                self._next = _Planned(self._epochs, epoch + 1)
        return self._epoch[1]


class _Planned:
    """The batches of an epoch, made by a thread meanwhile. Python does not wait for it when it exits."""

    def __init__(self, epochs: Epochs, epoch: int) -> None:
        self.epoch = epoch
        self._epochs, self._found = epochs, list[list[Index]]()
        self._thread = threading.Thread(target=self._make, daemon=True)
        self._thread.start()

    def batches(self) -> list[Index] | None:
        """Return them when they are made; None if that failed, for want of memory."""
        self._thread.join()
        return self._found[0] if self._found else None

    def _make(self) -> None:
        try:
            self._found.append(self._epochs.batches(self.epoch))
        except MemoryError:
            return
