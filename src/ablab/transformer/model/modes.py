"""Modes of running a model: evaluation, and the precision of vectors between matrix products."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn


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
    that no layer casts and half the bytes are moved. Weights, their gradients, sums inside norms, softmax and the loss
    stay in single precision.
    """
    if not torch.is_autocast_enabled(x.device.type):
        return x
    return x.to(torch.get_autocast_dtype(x.device.type))
