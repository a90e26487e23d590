"""Batches by a budget of padded tokens, from lengths alone; a pure function of (seed, epoch)."""

from collections.abc import Iterator

import numpy as np

from ablab.data.encoded import Index
from ablab.seeding import derive


def epoch_batches(src_lengths: Index, tgt_lengths: Index, *, batch_tokens: int, seed: int, epoch: int) -> list[Index]:
    """Rows of each batch of an epoch: every sentence once, sentences of like length together, in random order.

    A batch holds at most `batch_tokens` padded tokens on its larger side. Which of the equally long sentences
    share a batch, and the order of the batches, differ from epoch to epoch.
    """
    rng = np.random.default_rng(derive(seed, "order", epoch))
    shuffled = rng.permutation(len(src_lengths))
    order = _by_length(shuffled, src_lengths, tgt_lengths)
    # A first batch of random size moves every later boundary, so that other sentences meet in a small corpus too.
    first = int(batch_tokens * rng.uniform())
    batches = list(_cut(order, src_lengths, tgt_lengths, batch_tokens, first))
    return [batches[i] for i in rng.permutation(len(batches))]


def padding_share(batches: list[Index], src_lengths: Index, tgt_lengths: Index) -> float:
    """Share of the positions, source and target, that are padding."""
    tokens = src_lengths.sum() + tgt_lengths.sum()
    positions = sum(len(rows) * (src_lengths[rows].max() + tgt_lengths[rows].max()) for rows in batches)
    return float(1 - tokens / positions)


def _by_length(rows: Index, src_lengths: Index, tgt_lengths: Index) -> Index:
    """Stable, so that ties keep their shuffled order. The larger side first: it is what fills the budget."""
    src, tgt = src_lengths[rows], tgt_lengths[rows]
    return rows[np.lexsort((tgt, src, np.maximum(src, tgt)))]


def _cut(order: Index, src_lengths: Index, tgt_lengths: Index, batch_tokens: int, first: int) -> Iterator[Index]:
    start, widest, budget = 0, 0, first
    larger = np.maximum(src_lengths, tgt_lengths)[order].tolist()
    for end, width in enumerate(larger):
        if end > start and (end - start + 1) * max(widest, width) > budget:
            yield order[start:end]
            start, widest, budget = end, 0, batch_tokens
        widest = max(widest, width)
    yield order[start:]


def like_lengths(lengths: Index, batch_tokens: int) -> Iterator[Index]:
    """Rows in batches of at most `batch_tokens` padded tokens, longest first: a shortage of memory shows at once."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, batch_tokens // int(lengths[order[start]]))
        yield order[start : start + size]
        start += size
