"""What every site of a model draws, by the site's name."""

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from ablab.transformer.model.dropout import DropHead, Dropout, WordDropout
from ablab.transformer.model.layerdrop import LayerDrop

Drawn = defaultdict[str, list[Any]]
"""In order: multipliers of dropout and DropHead, layers that LayerDrop lets run, tokens that word dropout leaves."""


def record(model: nn.Module) -> Drawn:
    """From now on, as long as the model lives; in evaluation nothing is drawn. Clear it for another pass."""
    drawn: Drawn = defaultdict(list)
    for name, module in model.named_modules():
        if isinstance(module, Dropout | DropHead):
            module.multipliers = _noting(module.multipliers, drawn, name)
        elif isinstance(module, LayerDrop | WordDropout):
            module.register_forward_hook(partial(_note_output, drawn, name))
    return drawn


def _note_output(drawn: Drawn, name: str, module: nn.Module, given: Any, output: Any) -> None:
    if module.training and not (isinstance(module, WordDropout) and module.drop_prob == 0):
        drawn[name].append(output)


def _noting(draw: Callable[[Any], Tensor], drawn: Drawn, name: str) -> Callable[[Any], Tensor]:
    def noted(given: Any) -> Tensor:
        drawn[name].append(draw(given))
        return drawn[name][-1]

    return noted
