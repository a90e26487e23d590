"""Which checkpoints make the selected weights, and their mean."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

Weights = dict[str, Tensor]


def selected_steps(steps: list[int], best: int, *, select: str, average_last: int) -> list[int]:
    """Of the validated steps, those whose weights count.

    `averaged`: the `average_last` that end at the best; `best`: the best alone; `last`: the last alone.
    """
    if select == "last":
        return steps[-1:]
    end = steps.index(best) + 1
    return steps[max(0, end - (average_last if select == "averaged" else 1)) : end]


def steps_worth_keeping(steps: list[int], best: int, *, select: str, average_last: int) -> set[int]:
    """Those that are selected now, and those that would be if a later one turned out the best."""
    now = selected_steps(steps, best, select=select, average_last=average_last)
    recent = steps[-(average_last - 1) :] if select == "averaged" and average_last > 1 else []
    return {*now, *recent}


def average(checkpoints: Iterable[Mapping[str, Tensor]]) -> Weights:
    """Arithmetic mean of the parameters (Gao et al. 2022, eq. 1), summed in float64.

    Shared tables are stored once, so ties stay ties.
    """
    total: Weights = {}
    count = 0
    dtypes: dict[str, torch.dtype] = {}
    for checkpoint in checkpoints:
        count += 1
        for name, tensor in checkpoint.items():
            dtypes[name] = tensor.dtype
            total[name] = total.get(name, torch.zeros_like(tensor, dtype=torch.float64)) + tensor.double()
    return {name: (tensor / count).to(dtypes[name]) for name, tensor in total.items()}
