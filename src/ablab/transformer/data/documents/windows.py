"""Windows over the documents of a split, in which each token is scored exactly once."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ablab.transformer.data.batches import Index, like_lengths
from ablab.transformer.data.documents.packing import IGNORED, Packed, packed
from ablab.transformer.data.documents.shards import Shard


class Window(NamedTuple):
    """A batch of windows, and for each of its real targets the number of its document in the shard."""

    packed: Packed
    of: Int[Tensor, "tokens"]


class Windows(NamedTuple):
    """Parts of documents, [windows]: the `document`, where the window `begins` and `ends` in it, and what is `scored`.

    A window scores its last `scored` tokens: those before them have been scored in a former one, with as much before
    them.
    """

    document: Index
    begins: Index
    ends: Index
    scored: Index


def windows_of(lengths: Index, context: int, stride: int) -> Windows:
    """Return the windows over documents of these lengths, their ends included."""
    counts = 1 + np.maximum(0, -(-(lengths - context) // stride))
    document = np.repeat(np.arange(len(lengths)), counts)
    number = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = number * stride
    ends = np.minimum(begins + context, lengths[document])
    scored = ends - np.where(number > 0, begins - stride + context, 0)
    return Windows(document, begins, ends, scored)


def windows(shard: Shard, *, context: int, batch_tokens: int, stride: int | None = None) -> Iterator[Window]:
    """Yield all windows of a split, the longest first, in batches of at most `batch_tokens` padded tokens.

    Each document begins in a window of its own, with as many of its tokens as `context` holds; a longer one goes on in
    windows that begin `stride` tokens later, and score what is new to them. None: they do not overlap, so that each
    is read without what is before it. A smaller stride gives more tokens a long context and takes more time.
    """
    found = windows_of(shard.lengths, context, context if stride is None else min(stride, context))
    sizes = found.ends - found.begins
    end = shard.tokens[shard.starts[1] - 1] if len(shard) else 0
    for rows in like_lengths(sizes, batch_tokens):
        width = int(sizes[rows].max())
        columns = np.arange(width)
        inside = columns < sizes[rows, None]
        places = (shard.starts[found.document[rows]] + found.begins[rows])[:, None] + columns
        tokens = np.where(inside, shard.tokens[np.minimum(places, len(shard.tokens) - 1)], end).astype(np.int64)
        before = np.maximum(0, places[:, 0] - 1)
        first = np.where(found.begins[rows] > 0, shard.tokens[before], end).astype(np.int64)
        inputs = np.concatenate([first[:, None], tokens[:, :-1]], axis=1)
        is_new = inside & (columns >= (sizes - found.scored)[rows, None])
        batch = packed(inputs, np.where(is_new, tokens, IGNORED), columns == sizes[rows, None])
        of = np.repeat(found.document[rows], is_new.sum(axis=1))
        yield Window(batch, torch.from_numpy(of))
