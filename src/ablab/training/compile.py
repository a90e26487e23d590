"""Layers compiled one at a time: what LayerDrop leaves out of a step changes nothing that was compiled."""

import os
import shutil
from contextlib import AbstractContextManager

import torch

from ablab.errors import MachineError
from ablab.model.transformer import Transformer


def compile_layers(model: Transformer) -> None:
    """torch.compile for every layer, in place, at its first use; layers of one kind and all lengths share the result.

    A stack compiled as a whole would be compiled anew for each of the 2^L sets of layers that can run. DropHead draws
    from a stream of its own, which breaks its layer's graph in two.
    """
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers:
            layer.compile(dynamic=True)


def as_written() -> AbstractContextManager[object]:
    """Nothing compiled is used: for translating, whose shapes change with every token, and for whoever looks inside."""
    return torch.compiler.set_stance("force_eager")


def check_compiler() -> None:
    """MachineError where there is nothing to compile with; torch would say so at the first step, and at length."""
    wanted = [os.environ["CXX"]] if "CXX" in os.environ else ["g++", "c++", "clang++"]
    if not any(shutil.which(name) for name in wanted):
        raise MachineError(f"trainer.compile=true: no C++ compiler here ({', '.join(wanted)}); allowed: false")
