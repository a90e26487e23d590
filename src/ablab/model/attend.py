"""softmax(Q K^T / sqrt(d_k)) V (Vaswani et al. 2017, eq. 1), by whatever way is fastest where it runs."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from ablab.model.dropout import dropped


def attend(
    queries: Float[Tensor, "batch heads length d_head"],
    keys: Float[Tensor, "batch heads seen d_head"],
    values: Float[Tensor, "batch heads seen d_head"],
    mask: Bool[Tensor, "..."] | None,
    *,
    causal: bool,
    drop_prob: float,
) -> Float[Tensor, "batch heads length d_head"]:
    """`mask` is True where a query may look; `causal` hides the future; `drop_prob` falls on the weights.

    PyTorch's fused kernel, but for bfloat16 on the CPU: there the kernel's backward takes nine times as long as
    plain products do.
    """
    if queries.dtype == torch.bfloat16 and queries.device.type == "cpu":
        return _plainly(queries, keys, values, mask, causal=causal, drop_prob=drop_prob)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=drop_prob, is_causal=causal)


def weights(
    queries: Float[Tensor, "batch heads length d_head"],
    keys: Float[Tensor, "batch heads seen d_head"],
    mask: Bool[Tensor, "..."] | None,
    *,
    causal: bool = False,
) -> Float[Tensor, "batch heads length seen"]:
    """How much each query attends to each key."""
    scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    return torch.softmax(scores, dim=-1)


def _plainly(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, *, causal: bool, drop_prob: float
) -> Tensor:
    mixing = weights(queries, keys, mask, causal=causal)
    return dropped(mixing, drop_prob) @ values
