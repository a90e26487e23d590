"""How a model is run: in training or evaluation, and in which precision vectors travel between matrix products."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation inside the block, and as it was after it, so that looking at a model leaves no trace."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def as_products_take_it(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """x in autocast's precision where autocast is on, else as it is.

    Who enters a stack like this stays like this: norms, dropout and residual sums keep what they are given, so that
    nothing is cast at every layer and half the bytes are moved. Weights, their gradients, norms' sums, softmax and
    the loss stay in single precision inside.
    """
    if not torch.is_autocast_enabled(x.device.type):
        return x
    return x.to(torch.get_autocast_dtype(x.device.type))
