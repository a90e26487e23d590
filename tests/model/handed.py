"""Our weights put into torch.nn's modules."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ablab.transformer.model.attention import Attention, SelfAttention


@torch.no_grad()
def hand_linear(ours: nn.Module, theirs: nn.Module) -> None:
    """Weight and bias of a projection or a norm; a bias that ours lacks is 0."""
    theirs.weight.copy_(ours.weight)
    if ours.bias is None:
        theirs.bias.zero_()
    else:
        theirs.bias.copy_(ours.bias)


@torch.no_grad()
def hand_attention(ours: Attention, theirs: nn.MultiheadAttention) -> None:
    """All projections; theirs may lack biases where ours has none."""
    if isinstance(ours, SelfAttention):
        projections = [(ours.qkv, ("query", "key", "value"))]
    else:
        projections = [(ours.query, ("query",)), (ours.key_value, ("key", "value"))]
    theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear, _ in projections]))
    if theirs.in_proj_bias is not None:
        theirs.in_proj_bias.copy_(torch.cat([_written(linear, roles) for linear, roles in projections]))
        hand_linear(ours.output, theirs.out_proj)
    else:
        theirs.out_proj.weight.copy_(ours.output.weight)


def _written(linear: nn.Linear, roles: Sequence[str]) -> Tensor:
    """The bias with zeros for what has none: all, or the keys."""
    width = linear.in_features
    zeros = linear.weight.new_zeros(width)
    if linear.bias is None:
        return zeros.repeat(len(roles))
    given = list(linear.bias.split(width))
    if len(given) < len(roles):
        given.insert(roles.index("key"), zeros)
    assert len(given) == len(roles)
    return torch.cat(given)
