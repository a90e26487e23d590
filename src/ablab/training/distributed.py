"""The processes that compute each step together, one for each device: whose a part is, and how gradients are added."""

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ablab.training.validation import Validation


class Ranks(Protocol):
    """What an optimiser step must know of the other processes."""

    def mine(self, parts: int) -> range:
        """Which of a step's micro-batches this process computes."""

    def add_up(self, parameters: Sequence[nn.Parameter], loss: Tensor) -> None:
        """Turn gradients, and the loss (a scalar), from those of this process into those of all, in place."""


class SingleProcess:
    """One process, that does everything."""

    def mine(self, parts: int) -> range:
        """All of them."""
        return range(parts)

    def add_up(self, parameters: Sequence[nn.Parameter], loss: Tensor) -> None:
        """Nothing to add."""

    def go_on(self, validations: Sequence[Validation]) -> None:
        """Nobody to tell."""

    def check(self) -> None:
        """Nobody to lose."""


ALONE = SingleProcess()


class FirstOfMany(SingleProcess):
    """What process 0 of `size` computes, without the others: enough to see how fast and how large a step is."""

    def __init__(self, size: int) -> None:
        self.size = size

    def mine(self, parts: int) -> range:
        """Its share of the parts."""
        return range(0, parts, self.size)


class ProcessGroup:
    """Process `rank` of `size`, which meet in torch.distributed's default group.

    Not DistributedDataParallel: it averages where we sum, synchronises in every backward pass, and gives zeros to
    the parameters of a layer that LayerDrop left out, where Adam must see nothing.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def mine(self, parts: int) -> range:
        """Every size-th; none, when there are fewer parts than processes and this one comes late."""
        return range(self.rank, parts, self.size)

    def add_up(self, parameters: Sequence[nn.Parameter], loss: Tensor) -> None:
        """One sum for each type of number. Who has a gradient nowhere keeps None; who lacks it only here adds zero."""
        # On the processor even where gradients are on a GPU: asking a GPU would make it wait.
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
