"""The batches of each epoch, a pure function of sentence lengths, seed and epoch; and their number, without making any.

Sorted by length, every epoch is the same row of lengths. An epoch decides only which of equally long pairs comes first,
where the first batch ends, and the order of the batches.
"""

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from ablab.seeding import derive

Index = npt.NDArray[np.int64]

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
