"""The training data as a function of the optimiser step: ask for any step, get its micro-batches."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils.data import Dataset

from ablab.data.batching import epoch_batches, padding_share
from ablab.data.encoded import Index, Sentences
from ablab.model.tokens import BOS, EOS, PAD


class Batch(NamedTuple):
    """Some sentence pairs. `tgt` starts with BOS; what follows position i of it is `labels` at i.

    `real`: where the flat labels are tokens and no padding. It is known before a batch goes to a device, which then
    need not be asked, and waited for, in every step.
    """

    src: Int[Tensor, "batch src_len"]
    tgt: Int[Tensor, "batch tgt_len"]
    labels: Int[Tensor, "batch tgt_len"]
    real: Int[Tensor, "tokens"]

    @classmethod
    def of(
        cls, src: Int[Tensor, "batch src_len"], tgt: Int[Tensor, "batch tgt_len"], labels: Int[Tensor, "batch tgt_len"]
    ) -> "Batch":
        """Of what is still on the CPU."""
        return cls(src, tgt, labels, (labels.flatten() != PAD).nonzero().flatten())

    @property
    def tokens(self) -> int:
        """Target tokens, the ends of sentences included, padding not."""
        return len(self.real)


def collate(src: Sentences, tgt: Sentences, rows: Index) -> Batch:
    """Pad the pairs `rows` to tensors."""
    labels = torch.from_numpy(tgt.padded(rows)).long()
    begin = torch.full((len(rows), 1), BOS)
    # The decoder reads what it should have said before; an end of sentence is never followed by anything.
    shifted = torch.cat([begin, labels[:, :-1]], dim=1)
    shifted = shifted.masked_fill(shifted == EOS, PAD)
    return Batch.of(torch.from_numpy(src.padded(rows)).long(), shifted, labels)


def padding_share_of(batches: Sequence[Batch]) -> float:
    """Share of the positions, source and target, that are padding."""
    positions = sum(batch.src.numel() + batch.labels.numel() for batch in batches)
    tokens = sum(int((batch.src != PAD).sum()) + batch.tokens for batch in batches)
    return 1 - tokens / positions


class TrainingSteps(Dataset[list[Batch]]):
    """steps[i] holds the micro-batches of optimiser step i + 1, whatever was asked for before."""

    def __init__(
        self, src: Sentences, tgt: Sentences, *, batch_tokens: int, seed: int, micro_batches: int, total: int
    ) -> None:
        self.src, self.tgt = src, tgt
        self.src_lengths, self.tgt_lengths = src.lengths, tgt.lengths
        self.batch_tokens, self.seed, self.micro_batches, self.total = (
            batch_tokens,
            seed,
            micro_batches,
            total,
        )
        self._ends = [0]  # steps before each epoch, as far as known
        self._epoch: tuple[int, list[Index]] = (-1, [])

    def __len__(self) -> int:
        return self.total

    def __getitem__(self, index: int) -> list[Batch]:
        epoch = self.epoch_of(index)
        rows = self._batches(epoch)[index - self._ends[epoch]]
        parts = np.array_split(rows, min(self.micro_batches, len(rows)))
        return [collate(self.src, self.tgt, part) for part in parts]

    def epoch_of(self, index: int) -> int:
        """The epoch, from 0, in which step index + 1 falls."""
        while self._ends[-1] <= index:
            epoch = len(self._ends) - 1
            self._ends.append(self._ends[-1] + len(self._batches(epoch)))
        return bisect_right(self._ends, index) - 1

    def steps_in(self, epochs: int) -> int:
        """Optimiser steps of the first so many epochs."""
        while len(self._ends) <= epochs:
            self.epoch_of(self._ends[-1])
        return self._ends[epochs]

    def padding_share(self) -> float:
        """Share of padded positions in the first epoch."""
        return padding_share(self._batches(0), self.src_lengths, self.tgt_lengths)

    def _batches(self, epoch: int) -> list[Index]:
        if self._epoch[0] != epoch:
            batches = epoch_batches(
                self.src_lengths,
                self.tgt_lengths,
                batch_tokens=self.batch_tokens,
                seed=self.seed,
                epoch=epoch,
            )
            self._epoch = (epoch, batches)
        return self._epoch[1]
