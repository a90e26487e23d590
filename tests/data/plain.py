"""What the package computes fast, written out plainly: the laws of corpora compare with it."""

import numpy as np

from ablab.seeding import derive


def epoch_batches(src_lengths, tgt_lengths, *, batch_tokens, seed, epoch):
    """Shuffle, sort by length, cut where the budget is full, and shuffle the batches."""
    rng = np.random.default_rng(derive(seed, "order", epoch))
    shuffled = rng.permutation(len(src_lengths))
    src, tgt = src_lengths[shuffled], tgt_lengths[shuffled]
    order = shuffled[np.lexsort((tgt, src, np.maximum(src, tgt)))]
    first = int(batch_tokens * rng.uniform())
    batches = list(_cut(order, np.maximum(src_lengths, tgt_lengths), batch_tokens, first))
    return [batches[i] for i in rng.permutation(len(batches))]


def _cut(order, larger, batch_tokens, budget):
    start, widest = 0, 0
    for end, width in enumerate(larger[order].tolist()):
        if end > start and (end - start + 1) * max(widest, width) > budget:
            yield order[start:end]
            start, widest, budget = end, 0, batch_tokens
        widest = max(widest, width)
    yield order[start:]


def padding_share(batches, src_lengths, tgt_lengths):
    tokens = src_lengths.sum() + tgt_lengths.sum()
    positions = sum(len(rows) * (src_lengths[rows].max() + tgt_lengths[rows].max()) for rows in batches)
    return float(1 - tokens / positions)
