"""A model's two modes, training and evaluation."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation inside the block, and as it was after it, so that looking at a model leaves no trace."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
