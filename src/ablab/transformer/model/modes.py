"""Modes of running a model: evaluation, the precision of vectors between matrix products, compiled layers."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ablab.errors import MachineError


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put the model in evaluation mode within the block and restore its mode after it."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def as_products_take_it(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Return x in autocast's precision if autocast is on, else unchanged.

    Vectors that enter a stack in this precision keep it: norms, dropout and residual sums return the type they get, so
    that no layer casts and half the bytes are moved. Weights, their gradients, sums inside norms, and the softmax of
    attention stay in single precision, as the probabilities and sums of the loss do.
    """
    if not torch.is_autocast_enabled(x.device.type):
        return x
    return x.to(torch.get_autocast_dtype(x.device.type))


def compile_layers(stacks: Iterable[nn.ModuleList]) -> None:
    """Compile every layer in place, at its first use; layers of one kind share the result, for all lengths.

    A whole stack would be compiled anew for each of the 2^L sets of layers that LayerDrop can select. DropHead draws
    from its own random stream, which splits the graph of its layer in two.
    """
    for layers in stacks:
        for layer in layers:
            layer.compile(dynamic=True)


def as_written() -> AbstractContextManager[object]:
    """Use no compiled code within the block: for decoding, whose shapes change with every token, and inspection."""
    return torch.compiler.set_stance("force_eager")


def check_compiler() -> None:
    """Raise MachineError if there is no C++ compiler; torch would fail only at the first step, with a long message."""
    wanted = [os.environ["CXX"]] if "CXX" in os.environ else ["g++", "c++", "clang++"]
    if not any(shutil.which(name) for name in wanted):
        raise MachineError(f"trainer.compile=true: no C++ compiler here ({', '.join(wanted)}); allowed: false")
