"""Modules that draw random numbers of their own, each from a stream that bears its name."""

import torch
from torch import nn

from ablab.seeding import derive


class SeededModule(nn.Module):
    """A module with a generator of its own, on the CPU so that every device draws the same numbers.

    Its name in the model is its stream's: what one module draws, no other can move, whether it is there or not.
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

    def reseed_default(self) -> None:
        """Hand the next number of this stream to the default generators, just before something draws from them.

        For what takes no generator. Each call hands on another number, so a second pass draws anew. Compiled code
        takes its seeds where its graph begins: there is nothing to hand them to in its middle.
        """
        if not torch.compiler.is_compiling():
            _seed_default(int(torch.randint(2**63 - 1, (), generator=self.generator)))


def reseed(model: nn.Module, seed: int, *, step: int, micro_batch: int) -> None:
    """Set every stream of the model, and the default generators, to those of this step and micro-batch.

    The default ones serve parts that draw without a stream of their own.
    """
    _seed_default(derive(seed, "default", step, micro_batch))
    for name, module in model.named_modules():
        if isinstance(module, SeededModule):
            moment = (step,) if module.per_step else (step, micro_batch)
            module.reseed(derive(seed, name, *moment))


def _seed_default(seed: int) -> None:
    """Of all devices in use; without a GPU `torch.manual_seed` would note a stack trace for one, in 0.1 ms a call."""
    if torch.cuda.is_initialized():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
