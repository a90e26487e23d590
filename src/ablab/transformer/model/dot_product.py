"""Scaled dot-product attention, softmax(Q K^T / sqrt(d_k)) V (Vaswani et al. 2017, eq. 1), by the fastest way here.

A mask is True where a query may attend, as in PyTorch's scaled_dot_product_attention.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from ablab.transformer.model.dropout import Dropout


def attend(
    queries: Float[Tensor, "batch heads length d_head"],
    keys: Float[Tensor, "batch heads seen d_head"],
    values: Float[Tensor, "batch heads seen d_head"],
    mask: Bool[Tensor, "..."] | None,
    *,
    causal: bool,
    dropout: Dropout,
    bias: Float[Tensor, "#batch #heads #length seen"] | None = None,
) -> Float[Tensor, "batch heads length d_head"]:
    """Return the values weighted by attention.

    `mask` is True where a query may attend; `causal` hides the future; `dropout` applies to the attention weights;
    `bias` is added to the scores. Uses PyTorch's fused kernel, except in two cases on the CPU where plain products are
    faster: with dropout, for which the kernel draws one float at a time, and in bfloat16, where the kernel's backward
    takes nine times as long.
    """
    if queries.device.type == "cpu" and (dropout.rate or queries.dtype == torch.bfloat16):
        return _plainly(queries, keys, values, mask, causal=causal, dropout=dropout, bias=bias)
    if dropout.rate:
        dropout.reseed_default()
    if bias is not None:
        mask, causal = _visible(bias, mask, causal=causal).to(queries.dtype), False
    return F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=mask, dropout_p=dropout.rate, is_causal=causal
    )


def weights(
    queries: Float[Tensor, "batch heads length d_head"],
    keys: Float[Tensor, "batch heads seen d_head"],
    mask: Bool[Tensor, "..."] | None,
    *,
    causal: bool = False,
    bias: Float[Tensor, "#batch #heads #length seen"] | None = None,
) -> Float[Tensor, "batch heads length seen"]:
    """Return the attention weights softmax(Q K^T / sqrt(d_k) + bias); each row sums to 1.

    They have the precision of the scores, or with a bias single precision at least, whatever that of the bias.
    """
    scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.size(-1))
    if bias is not None:
        scores = scores + bias.to(torch.promote_types(scores.dtype, torch.float32))
    return torch.softmax(_visible(scores, mask, causal=causal), dim=-1)


def _visible(scores: Tensor, mask: Tensor | None, *, causal: bool) -> Tensor:
    """Return the scores with minus infinity where a query may not attend."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    return scores


def _plainly(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    *,
    causal: bool,
    dropout: Dropout,
    bias: Tensor | None = None,
) -> Tensor:
    return dropout(weights(queries, keys, mask, causal=causal, bias=bias)).to(values.dtype) @ values
