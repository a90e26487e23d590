"""The training data as a function of the optimiser step: the micro-batches of each step, whatever was asked before."""

import threading
from bisect import bisect_right

import numpy as np
from torch.utils.data import Dataset

from ablab.transformer.data.batches import Batch, Sentences, collate
from ablab.transformer.data.epochs import Epochs, Index


class TrainingSteps(Dataset[list[Batch]]):
    """The micro-batches by optimiser step: steps[i] belongs to step i + 1, in whatever order steps are read."""

    def __init__(
        self, src: Sentences, tgt: Sentences, *, batch_tokens: int, seed: int, micro_batches: int, total: int
    ) -> None:
        self.src, self.tgt = src, tgt
        self.micro_batches, self.total = micro_batches, total
        self._epochs = Epochs(src.lengths, tgt.lengths, batch_tokens=batch_tokens, seed=seed)
        self._ends = [0]  # number of steps before each epoch, as far as computed
        self._epoch: tuple[int, list[Index]] = (-1, [])
        self._next: _Planned | None = None

    def __len__(self) -> int:
        return self.total

    def __getitem__(self, index: int) -> list[Batch]:
        epoch = self.epoch_of(index)
        rows = self._batches(epoch)[index - self._ends[epoch]]
        parts = np.array_split(rows, min(self.micro_batches, len(rows)))
        return [collate(self.src, self.tgt, part) for part in parts]

    def epoch_of(self, index: int) -> int:
        """Return the epoch, counted from 0, of step index + 1."""
        while self._ends[-1] <= index:
            self._ends.append(self._ends[-1] + self._epochs.steps(len(self._ends) - 1))
        return bisect_right(self._ends, index) - 1

    def steps_in(self, epochs: int) -> int:
        """Return the number of optimiser steps in the first `epochs` epochs."""
        while len(self._ends) <= epochs:
            self.epoch_of(self._ends[-1])
        return self._ends[epochs]

    def padding_share(self) -> float:
        """Return the share of padded positions in the first epoch."""
        return self._epochs.padding_share(0)

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
