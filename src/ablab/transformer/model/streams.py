"""Modules with their own random streams, each seeded by the module's name."""

import torch
from torch import nn

from ablab.seeding import derive


class SeededModule(nn.Module):
    """A module with its own random generator, on the CPU so that every device draws the same numbers.

    Its name in the model names its stream, so that adding or removing a module does not change the draws of another.
    `per_step`: one draw for all micro-batches of an optimiser step (and for all ranks), so that splitting a step
    into micro-batches changes nothing; otherwise each micro-batch draws anew.
    """

    per_step = False

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator()

    def reseed(self, seed: int) -> None:
        """Seed this module's stream for one step or micro-batch."""
        self.generator.manual_seed(seed)

    def reseed_default(self) -> None:
        """Seed the default generators with the next number of this stream, for functions that take no generator.

        Call it just before such a function draws. Each call uses another number, so that a second pass draws anew.
        Does nothing in compiled code, which takes its seeds where its graph begins and cannot be reseeded within it.
        """
        if not torch.compiler.is_compiling():
            seed_default(int(torch.randint(2**63 - 1, (), generator=self.generator)))


def reseed(model: nn.Module, seed: int, *, step: int, micro_batch: int) -> None:
    """Seed every stream of the model, and the default generators, for this step and micro-batch.

    The default generators serve modules that draw without a stream of their own.
    """
    seed_default(derive(seed, "default", step, micro_batch))
    for name, module in model.named_modules():
        if isinstance(module, SeededModule):
            moment = (step,) if module.per_step else (step, micro_batch)
            module.reseed(derive(seed, name, *moment))


def seed_default(seed: int) -> None:
    """Seed the default generators of all devices in use.

    Without a GPU, `torch.manual_seed` would record a stack trace for one, which takes 0.1 ms a call.
    """
    if torch.cuda.is_initialized():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
