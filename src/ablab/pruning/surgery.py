"""Takes layers out of a model, or out of its weights on disk."""

import re
from collections.abc import Mapping

from torch import Tensor

from ablab.model.transformer import Transformer
from ablab.pruning.kept import STACKS, Kept


def prune(model: Transformer, kept: Kept) -> Transformer:
    """The model with only these layers. It shares its parameters with the full one, and costs no memory.

    In evaluation it computes what the full model does when the other layers are skipped, bit for bit.
    """
    return Transformer(
        model.words,
        model.word_dropout,
        model.source_input,
        model.target_input,
        model.encoder.of_layers(kept.encoder),
        model.decoder.of_layers(kept.decoder),
    ).train(model.training)


def prune_weights(weights: Mapping[str, Tensor], kept: Kept) -> dict[str, Tensor]:
    """The same on a state dictionary: layers renumbered from 0, what is per layer cut, all else as it was."""
    pruned: dict[str, Tensor] = {}
    places = {f"{stack}.layers.{old}.": f"{stack}.layers.{new}." for stack, new, old in _moves(kept)}
    for name, tensor in weights.items():
        if match := re.match(r"(encoder|decoder)\.layers\.\d+\.", name):
            if match[0] in places:
                pruned[places[match[0]] + name.removeprefix(match[0])] = tensor
        elif match := re.match(r"(encoder|decoder)\.layerdrop\.", name):
            pruned[name] = tensor[list(getattr(kept, match[1]))]
        else:
            pruned[name] = tensor
    return pruned


def _moves(kept: Kept) -> list[tuple[str, int, int]]:
    return [(stack, new, old) for stack in STACKS for new, old in enumerate(getattr(kept, stack))]
