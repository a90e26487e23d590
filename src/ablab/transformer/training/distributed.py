"""Data-parallel steps, one process per device: assignment of micro-batches to processes, and sums of gradients."""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ablab.transformer.training.validation import Validation


class SingleProcess:
    """A single process, which computes every step alone."""

    def mine(self, parts: int) -> range:
        """Return the indices of a step's micro-batches that this process computes: all."""
        return range(parts)

    def add_up(self, parameters: Sequence[nn.Parameter], loss: Tensor) -> None:
        """Do nothing: there are no other processes."""

    def go_on(self, validation: Validation | None) -> None:
        """Do nothing: no other process waits for the next step."""

    def check(self) -> None:
        """Do nothing: no other process can be lost."""


ALONE = SingleProcess()


class FirstOfMany(SingleProcess):
    """Process 0 of `size` without the others, to measure the time and memory of a step."""

    def __init__(self, size: int) -> None:
        self.size = size

    def mine(self, parts: int) -> range:
        """Return every size-th index from 0."""
        return range(0, parts, self.size)


class ProcessGroup:
    """Process `rank` of `size` in torch.distributed's default group.

    DistributedDataParallel does not fit: it averages instead of summing, synchronises in every backward pass, and
    gives zero gradients to a layer that LayerDrop left out, which Adam must not step.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def mine(self, parts: int) -> range:
        """Return every size-th index from `rank`; none if there are no more parts than `rank`."""
        return range(self.rank, parts, self.size)

    def add_up(self, parameters: Sequence[nn.Parameter], loss: Tensor) -> None:
        """Sum gradients once per dtype. One that is None in all processes stays None; one missing only here adds 0."""
        # On the CPU even where gradients are on a GPU, as reading from a GPU would make it wait.
        present = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.uint8)
        self._reduce(present, dist.ReduceOp.MAX)
        used = [parameter for parameter, flag in zip(parameters, present.tolist(), strict=True) if flag]
        for dtype in {parameter.dtype: None for parameter in used}:
            alike = [parameter for parameter in used if parameter.dtype == dtype]
            flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in alike])
            self._reduce(flat, dist.ReduceOp.SUM)
            for parameter, gradient in zip(alike, flat.split([p.numel() for p in alike]), strict=True):
                parameter.grad = gradient.view_as(parameter)
        self._reduce(loss, dist.ReduceOp.SUM)

    def _reduce(self, tensor: Tensor, operation: dist.ReduceOp.RedOpType) -> None:
        dist.all_reduce(tensor, operation)


Ranks = SingleProcess | ProcessGroup
"""The interface of an optimiser step to the other processes."""
