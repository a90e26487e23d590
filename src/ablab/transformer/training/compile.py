"""Compilation with torch.compile, one layer at a time, so that LayerDrop causes no recompilation."""

import os
import shutil
from contextlib import AbstractContextManager

import torch

from ablab.errors import MachineError
from ablab.transformer.model.transformer import TokenModel


def compile_layers(model: TokenModel) -> None:
    """Compile every layer in place, at its first use; layers of one kind share the result, for all lengths.

    A whole stack would be compiled anew for each of the 2^L sets of layers that LayerDrop can select. DropHead draws
    from its own random stream, which splits the graph of its layer in two.
    """
    for layers in model.stacks.values():
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
