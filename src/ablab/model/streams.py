"""Modules that draw random numbers of their own, each from a stream that bears its name."""

import torch
from torch import nn

from ablab.seeding import derive


class Stochastic(nn.Module):
    """A module with a generator of its own, on the CPU so that every device draws the same numbers.

    `per_step`: one draw for all micro-batches of an optimiser step (and for all ranks), so that splitting a step
    into micro-batches changes nothing; otherwise each micro-batch draws anew.
    """

    per_step = False

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator()

    def reseed(self, seed: int) -> None:
        """Start this module's stream for one step or micro-batch."""
        self.generator.manual_seed(seed)


def reseed(model: nn.Module, seed: int, *, step: int, micro_batch: int) -> None:
    """Set every stream of the model, and the default generator, to those of this step and micro-batch.

    The default generator serves what takes no other: ordinary dropout and attention dropout.
    """
    torch.manual_seed(derive(seed, "dropout", step, micro_batch))
    for name, module in model.named_modules():
        if isinstance(module, Stochastic):
            moment = (step,) if module.per_step else (step, micro_batch)
            module.reseed(derive(seed, name, *moment))
