"""Gradients and losses of several processes become those of one."""

import threading

import pytest
import torch
import torch.distributed as dist
from torch import nn

from ablab.transformer.training.distributed import FirstOfMany, ProcessGroup, SingleProcess


class _Threads(ProcessGroup):
    """Threads in place of processes."""

    def __init__(self, rank, size, table, barrier):
        super().__init__(rank, size)
        self.table, self.barrier = table, barrier

    def _reduce(self, tensor, operation):
        self.table[self.rank] = tensor
        self.barrier.wait()
        stacked = torch.stack([self.table[rank] for rank in range(self.size)])
        self.barrier.wait()
        tensor.copy_(stacked.sum(dim=0) if operation == dist.ReduceOp.SUM else stacked.amax(dim=0))


def _added_up(gradients, losses):
    """What each process has afterwards; `gradients[rank]` has one tensor or None for each parameter."""
    size = len(losses)
    table, barrier = {}, threading.Barrier(size, timeout=10)
    shapes = [next((g for g in column if g is not None), torch.zeros(2, 3)) for column in zip(*gradients, strict=True)]
    ends = {}

    def work(rank):
        parameters = [nn.Parameter(torch.zeros_like(shape)) for shape in shapes]
        for parameter, gradient in zip(parameters, gradients[rank], strict=True):
            parameter.grad = None if gradient is None else gradient.clone()
        loss = torch.tensor(losses[rank])
        _Threads(rank, size, table, barrier).add_up(parameters, loss)
        ends[rank] = ([parameter.grad for parameter in parameters], loss)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [ends[rank] for rank in range(size)]


def test_sums_whoever_has_a_gradient_and_none_where_nobody_has_one():
    """Adam must not see a layer that was left out; a process without a sentence adds nothing."""
    torch.manual_seed(1)
    everywhere, here, there = torch.randn(2, 3, 4), torch.randn(5), torch.randn(3, 2, dtype=torch.float64)
    gradients = [
        [everywhere[0], here, None, None],
        [everywhere[1], None, None, there],
        [None, None, None, None],
    ]
    for found, loss in _added_up(gradients, [0.25, 0.5, 0.0]):
        torch.testing.assert_close(found[0], everywhere[0] + everywhere[1])
        assert torch.equal(found[1], here)
        assert found[2] is None
        assert torch.equal(found[3], there)
        assert loss.item() == 0.75


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("parts", [1, 2, 8])
def test_every_part_has_one_owner(size, parts):
    owners = [part for rank in range(size) for part in ProcessGroup(rank, size).mine(parts)]
    assert sorted(owners) == list(SingleProcess().mine(parts))
    assert FirstOfMany(size).mine(parts) == ProcessGroup(0, size).mine(parts)
