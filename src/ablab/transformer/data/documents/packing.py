"""Contexts packed with documents: those of each step of training, a pure function of lengths, seed and epoch."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from ablab.seeding import derive
from ablab.transformer.data.batches import Index
from ablab.transformer.data.documents.shards import Shard
from ablab.transformer.data.steps import Steps

IGNORED = -1
"""The label of padding."""


class Packed(NamedTuple):
    """Contexts in which documents stand one after the other. Each is read from an end, and predicted up to its own.

    The token after position i of `text` is `labels` at i, always one of the same document; of padding it is IGNORED.
    `documents`: which document of its row a position belongs to, counted from 0; padding after them is one more.
    `real`: indices of the tokens in the flattened labels, padding excluded, computed before a batch goes to a device.
    """

    text: Int[Tensor, "batch context"]
    labels: Int[Tensor, "batch context"]
    documents: Int[Tensor, "batch context"]
    real: Int[Tensor, "tokens"]

    @property
    def inputs(self) -> tuple[Tensor, Tensor]:
        """What the model reads, and which document each token is of."""
        return self.text, self.documents

    @property
    def tokens(self) -> int:
        """Number of predicted tokens, ends of documents among them."""
        return len(self.real)

    @property
    def positions(self) -> int:
        """Number of positions, padding among them."""
        return self.labels.numel()

    @property
    def filled(self) -> int:
        """Number of positions without padding."""
        return self.tokens


def packed(inputs: Index, targets: Index, begins: npt.NDArray[np.bool_]) -> Packed:
    """Return rows as a batch on the CPU.

    inputs, targets, begins: [rows, context]; `begins` marks the first position of each document, or of padding. The
    first position of a row begins its document, too, whether or not a former row has the rest of it.
    """
    begins = begins.copy()
    begins[:, 0] = True
    documents = begins.cumsum(axis=1) - 1
    real = np.flatnonzero(targets.ravel() != IGNORED)
    return Packed(*map(torch.from_numpy, (inputs, targets, documents, real)))


class PackedEpochs:
    """Every token once in each epoch: the documents in random order, one after the other, cut into rows of `context`.

    The order of the documents, where the first row ends, and the order of the rows differ from epoch to epoch, so that
    even a text of one document is cut elsewhere.
    """

    def __init__(self, shard: Shard, *, context: int, rows: int, seed: int) -> None:
        self.shard, self.context, self.rows, self.seed = shard, context, rows, seed
        self.lengths, self.tokens = shard.lengths, int(shard.starts[-1])

    def first(self, epoch: int) -> int:
        """Return the number of tokens of the first row, which is shorter than others; 0: it is none."""
        if self.tokens <= self.context:
            return 0
        return int(np.random.default_rng(derive(self.seed, "cut", epoch)).integers(self.context))

    def row_count(self, epoch: int) -> int:
        """Return the number of rows."""
        first = self.first(epoch)
        return (first > 0) + -(-(self.tokens - first) // self.context)

    def steps(self, epoch: int) -> int:
        """Return the number of steps, each of `rows` rows and the last of the rest."""
        return -(-self.row_count(epoch) // self.rows)

    def padding_share(self, epoch: int) -> float:
        """Return the share of positions that are padding."""
        return 1 - self.tokens / (self.row_count(epoch) * self.context)

    def order(self, epoch: int) -> "EpochOrder":
        """Return the order of documents and rows."""
        documents = np.random.default_rng(derive(self.seed, "documents", epoch)).permutation(len(self.lengths))
        rows = np.random.default_rng(derive(self.seed, "rows", epoch)).permutation(self.row_count(epoch))
        ends = np.cumsum(self.lengths[documents])
        return EpochOrder(epoch, self.first(epoch), documents, ends, rows)


class EpochOrder(NamedTuple):
    """The order of an epoch: its `documents`, where each ends in the stream of all, and its `rows`.

    `first`: tokens of the first row, if it is shorter than the others.
    """

    epoch: int
    first: int
    documents: Index
    ends: Index
    rows: Index

    def bounds(self, rows: Index, context: int) -> tuple[Index, Index]:
        """Return where rows begin and end in the stream."""
        ends = (rows + 1) * context - (context - self.first if self.first else 0)
        return np.maximum(0, ends - context), np.minimum(ends, self.ends[-1])


class PackedSteps(Steps[Packed]):
    """The micro-batches by optimiser step: steps[i] belongs to step i + 1, in whatever order steps are read."""

    def __init__(
        self, shard: Shard, *, context: int, batch_tokens: int, seed: int, micro_batches: int, total: int
    ) -> None:
        self.shard, self.context, self.micro_batches = shard, context, micro_batches
        self._epochs = PackedEpochs(shard, context=context, rows=max(1, batch_tokens // context), seed=seed)
        self._end = int(shard.tokens[shard.starts[1] - 1])  # that of the first document, as of each
        super().__init__(self._epochs, total)
        self._order: EpochOrder | None = None

    def __len__(self) -> int:
        return self.total

    def __getitem__(self, index: int) -> list[Packed]:
        epoch = self.epoch_of(index)
        order = self._order if self._order is not None and self._order.epoch == epoch else self._epochs.order(epoch)
        self._order = order
        begin = (index - self._ends[epoch]) * self._epochs.rows
        rows = order.rows[begin : begin + self._epochs.rows]
        parts = np.array_split(rows, min(self.micro_batches, len(rows)))
        return [self._packed(order, part) for part in parts]

    def _packed(self, order: EpochOrder, rows: Index) -> Packed:
        begins, ends = order.bounds(rows, self.context)
        places = begins[:, None] + np.arange(self.context)  # in the stream
        is_real = places < ends[:, None]
        places = np.minimum(places, self._epochs.tokens - 1)
        among = np.searchsorted(order.ends, places, side="right")
        documents = order.documents[among]
        starts = order.ends[among] - self._epochs.lengths[documents]
        targets = self._tokens(documents, places - starts)
        # The first position of a row reads what a former one ends with; that of a document an end, wherever it stands.
        first = places[:, :1] - starts[:, :1]
        before = np.where(first > 0, self._tokens(documents[:, :1], first - 1), self._end)
        inputs = np.concatenate([before, targets[:, :-1]], axis=1)
        begin = (places == starts) | (np.arange(self.context) == (ends - begins)[:, None])
        return packed(np.where(is_real, inputs, self._end), np.where(is_real, targets, IGNORED), begin)

    def _tokens(self, documents: Index, places: Index) -> Index:
        """Return the tokens at these places of documents."""
        at = np.maximum(self.shard.starts[documents] + places, 0)
        return self.shard.tokens[at].astype(np.int64)
