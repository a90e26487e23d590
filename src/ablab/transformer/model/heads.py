"""Removal of attention heads: a twin of a model whose attentions have fewer heads of the same width."""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ablab.transformer.model.attention import Attention
from ablab.transformer.model.dropout import DropHead
from ablab.transformer.model.positions import AttentionPosition
from ablab.transformer.model.projection import Projection
from ablab.transformer.model.transformer import AnyTokenModel, TokenModel

SITES = {
    "encoder": ("encoder", "self_attention"),
    "decoder": ("decoder", "self_attention"),
    "cross": ("decoder", "cross_attention"),
}
"""Kinds of attention, named as DropHead names them: the stack and the sublayer that they are."""

Kept = Mapping[str, Sequence[Sequence[int]]]
"""By site and layer, the indices of the heads that remain, from 0 and ascending."""

AnyModule = TypeVar("AnyModule", bound=nn.Module)


def attentions(model: TokenModel) -> dict[str, list[Attention]]:
    """Return the attention of each layer, the lowest first, by each site that the model has."""
    found = {site: [*model.stacks.get(stack, ())] for site, (stack, _) in SITES.items()}
    return {
        site: [getattr(layer, SITES[site][1]) for layer in layers]
        for site, layers in found.items()
        if SITES[site][0] in model.stacks and all(hasattr(layer, SITES[site][1]) for layer in layers)
    }


def with_heads(model: AnyTokenModel, kept: Kept) -> AnyTokenModel:
    """Return the model with only these heads. All other tensors are those of the full model, which stays unchanged.

    In evaluation it computes what the full model does when the outputs of the other heads are 0, up to rounding.
    """
    twin = sharing_tensors(model)
    for site, sublayers in attentions(twin).items():
        for attention, heads in zip(sublayers, kept[site], strict=True):
            _keep(attention, heads)
    return twin


def sharing_tensors(module: AnyModule) -> AnyModule:
    """Return a copy of the modules whose parameters and buffers are the same tensors."""
    return copy.deepcopy(module, {id(tensor): tensor for tensor in [*module.parameters(), *module.buffers()]})


def _keep(attention: Attention, heads: Sequence[int]) -> None:
    """Replace the projections by smaller ones; with all heads they stay as they are."""
    count = attention.num_heads
    if len(heads) == count:
        return
    width = len(heads) * (attention.output.in_features // count)
    weights = fewer(attention.state_dict(), heads, count)
    for name in PROJECTIONS:
        whole = getattr(attention, name, None)
        if isinstance(whole, Projection):
            sizes = (width, whole.out_features) if name == OUTPUT else (whole.in_features, width)
            smaller = Projection(sizes[0], whole.has_bias, sizes[1]).to(whole.weight)
            smaller.load_state_dict({key: weights[f"{name}.{key}"] for key in whole.state_dict()})
            setattr(attention, name, smaller.train(whole.training))
    if isinstance(attention.drophead, DropHead):
        attention.drophead.num_heads = len(heads)
    # The twin's own parts, whose parameters keep their names and sizes: they are asked about all heads, then cut.
    position = getattr(attention, "position", None)
    if position is not None:
        position.bias = partial(_bias, position.bias, list(heads))
    for part, method in ((position, "rotate"), (attention.norm, "queries"), (attention.norm, "keys")):
        if part is not None and _may_tell_heads_apart(part, method):
            setattr(part, method, partial(_among_all, getattr(part, method), list(heads), count))
    attention.num_heads = len(heads)


def _bias(
    whole: Callable[[int, int, int], Float[Tensor, "all_heads length seen"] | None],
    heads: list[int],
    start: int,
    length: int,
    seen: int,
) -> Float[Tensor, "heads length seen"] | None:
    """Return what positions add to the scores of these heads, if anything."""
    bias = whole(start, length, seen)
    return None if bias is None else bias[heads]


def _may_tell_heads_apart(part: nn.Module, method: str) -> bool:
    """Return whether a part may treat heads differently: those of ablab do not, nor does one that returns its input."""
    is_own = type(part).__module__.partition(".")[0] == __name__.partition(".")[0]
    return not is_own and getattr(type(part), method) is not AttentionPosition.rotate


def _among_all(
    whole: Callable[..., Float[Tensor, "batch all_heads length d_head"]],
    heads: list[int],
    count: int,
    x: Float[Tensor, "batch heads length d_head"],
    *others: int,
) -> Float[Tensor, "batch heads length d_head"]:
    """Return what a part makes of these heads at their places among all `count`, where the others are 0."""
    index = torch.tensor(heads, device=x.device)
    placed = x.new_zeros(x.size(0), count, *x.shape[2:]).index_copy(1, index, x)
    return whole(placed, *others).index_select(1, index)


OUTPUT = "output"
"""The projection that reads the heads."""

PROJECTIONS = ("qkv", "query", "key_value", OUTPUT)
"""All projections of an attention; the others write queries, keys and values."""


def fewer(weights: Mapping[str, Tensor], heads: Sequence[int], num_heads: int) -> dict[str, Tensor]:
    """Remove the rows and columns of all other heads from the state of one attention that has `num_heads` of them.

    Matrices of queries, keys and values are [parts * num_heads * d_head, d_model], their bias has a number per row of
    the parts that have one. The matrix of the output is [d_model, num_heads * d_head]; its bias is no head's.
    """
    d_head = weights[f"{OUTPUT}.weight"].size(1) // num_heads
    index = torch.tensor(heads, device=weights[f"{OUTPUT}.weight"].device)
    pruned = dict(weights)
    for name, tensor in weights.items():
        if name == f"{OUTPUT}.weight":
            pruned[name] = tensor.unflatten(1, (num_heads, d_head)).index_select(1, index).flatten(1)
        elif name.partition(".")[0] in PROJECTIONS and not name.startswith(OUTPUT):
            pruned[name] = tensor.unflatten(0, (-1, num_heads, d_head)).index_select(1, index).flatten(0, 2)
    return pruned
