"""softmax(Q K^T / sqrt(d_k)) V (Vaswani et al. 2017, eq. 1), by whatever way is fastest where it runs."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from ablab.model.dropout import Dropout


def attend(
    queries: Float[Tensor, "batch heads length d_head"],
    keys: Float[Tensor, "batch heads seen d_head"],
    values: Float[Tensor, "batch heads seen d_head"],
    mask: Bool[Tensor, "..."] | None,
    *,
    causal: bool,
    dropout: Dropout,
) -> Float[Tensor, "batch heads length d_head"]:
    """`mask` is True where a query may look; `causal` hides the future; `dropout` falls on the weights.

    PyTorch's fused kernel, but for two cases on the CPU, where plain products are faster: dropout, which the kernel
    draws a float at a time, and bfloat16, where its backward takes nine times as long.
    """
    if queries.device.type == "cpu" and (dropout.rate or queries.dtype == torch.bfloat16):
        return _plainly(queries, keys, values, mask, causal=causal, dropout=dropout)
    if dropout.rate:
        dropout.reseed_default()
    return F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=mask, dropout_p=dropout.rate, is_causal=causal
    )


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
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, *, causal: bool, dropout: Dropout
) -> Tensor:
    return dropout(weights(queries, keys, mask, causal=causal)) @ values
