"""Multi-head self-attention and cross-attention.

Computes softmax(Q K^T / sqrt(d_k)) V (Vaswani et al. 2017, eq. 1) with the fastest method on each device. Projections
of one input share one matrix product. A mask is True where a query may attend, as in PyTorch's
scaled_dot_product_attention.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ablab.model.attention_norms import AttentionNorm
from ablab.model.dropout import Dropout
from ablab.model.positions import AttentionPosition
from ablab.model.projection import Projection


def attend(
    queries: Float[Tensor, "batch heads length d_head"],
    keys: Float[Tensor, "batch heads seen d_head"],
    values: Float[Tensor, "batch heads seen d_head"],
    mask: Bool[Tensor, "..."] | None,
    *,
    causal: bool,
    dropout: Dropout,
    bias: Float[Tensor, "heads length seen"] | None = None,
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
        mask, causal = _visible(bias[None], mask, causal=causal).to(queries.dtype), False
    return F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=mask, dropout_p=dropout.rate, is_causal=causal
    )


def weights(
    queries: Float[Tensor, "batch heads length d_head"],
    keys: Float[Tensor, "batch heads seen d_head"],
    mask: Bool[Tensor, "..."] | None,
    *,
    causal: bool = False,
    bias: Float[Tensor, "heads length seen"] | None = None,
) -> Float[Tensor, "batch heads length seen"]:
    """Return the attention weights softmax(Q K^T / sqrt(d_k) + bias); each row sums to 1."""
    scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.size(-1))
    if bias is not None:
        scores = scores + bias
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
    return dropout(weights(queries, keys, mask, causal=causal, bias=bias)) @ values


BIASES: dict[str, tuple[str, ...]] = {
    "all": ("query", "key", "value", "output"),
    "no_key": ("query", "value", "output"),
    "none": (),
}
"""Projections that have a bias, by option. A key bias adds the same number to all scores of a query; softmax cancels
it, so it would learn from rounding alone, unless keys are normalised or rotated. The code of Vaswani et al.
(tensor2tensor) has no biases."""


class KeysValues(NamedTuple):
    """Projected keys and values, one sequence per row: [batch, heads, length, d_head] each."""

    keys: Tensor
    values: Tensor

    def rows(self, index: Tensor) -> "KeysValues":
        """Select the rows `index`, in that order."""
        return KeysValues(self.keys.index_select(0, index), self.values.index_select(0, index))


class KVCache:
    """Keys and values of the target so far, for token-by-token decoding without gradients.

    Holds two pairs of buffers, [max_len, rows, heads, d_head] each. Positions come first, so that each write fills one
    contiguous block. The second pair lets `reorder` copy the rows once instead of twice. `like`: the type and width of
    a head's vectors, [..., d_head].
    """

    def __init__(self, like: Tensor, max_len: int, rows: int, heads: int) -> None:
        shape = (max_len, rows, heads, like.size(-1))
        self.here = KeysValues(like.new_empty(shape), like.new_empty(shape))
        self.there = KeysValues(like.new_empty(shape), like.new_empty(shape))

    def write(
        self, position: int, keys: Float[Tensor, "rows heads d_head"], values: Float[Tensor, "rows heads d_head"]
    ) -> None:
        """Store the keys and values of the token at `position`."""
        self.here.keys[position] = keys
        self.here.values[position] = values

    def until(self, position: int) -> KeysValues:
        """Return keys and values up to and including `position`, [rows, heads, length, d_head]."""
        return KeysValues(*(buffer[: position + 1].permute(1, 2, 0, 3) for buffer in self.here))

    def reorder(self, rows: Int[Tensor, "rows"], written: int) -> None:
        """Replace row i by row `rows[i]`, for the first `written` positions; `rows` may be shorter than before."""
        for old, new in zip(self.here, self.there, strict=True):
            torch.index_select(old[:written], 1, rows, out=new[:written, : len(rows)])
        self.here, self.there = (
            KeysValues(*(buffer[:, : len(rows)] for buffer in pair)) for pair in (self.there, self.here)
        )


class Attention(nn.Module):
    """Base class of self- and cross-attention: splits heads, mixes values, drops heads, projects the output.

    `bias` is one of `BIASES`; `dropout` applies to the attention weights; `norm` to queries and keys, None for neither.
    Raises ValueError for an unknown `bias`, or when `num_heads` does not divide `d_model`.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        bias: str,
        dropout: Dropout,
        drophead: nn.Module,
        norm: AttentionNorm | None = None,
    ) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model must be divisible by num_heads, got {d_model=}, {num_heads=}.")
        if bias not in BIASES:
            raise ValueError(f"got {bias=}; allowed: {', '.join(BIASES)}.")
        self.biased = BIASES[bias]
        self.d_model = d_model
        self.num_heads = num_heads
        self.dropout = dropout
        self.drophead = drophead
        self.output = self.project("output")
        self.norm = norm

    def project(self, *parts: str) -> Projection:
        """Make one matrix for the projections `parts` of one input, each with or without bias as `bias` says."""
        return Projection(self.d_model, [part in self.biased for part in parts])

    def split(self, x: Float[Tensor, "batch length width"], parts: int) -> tuple[Tensor, ...]:
        """Split [batch, length, parts * d_model] into `parts` tensors [batch, heads, length, d_head]."""
        cut = x.unflatten(-1, (parts, self.num_heads, -1))
        return tuple(part.transpose(1, 2) for part in cut.unbind(2))

    def as_queries(
        self, queries: Float[Tensor, "batch heads length d_head"]
    ) -> Float[Tensor, "batch heads length d_head"]:
        """Return projected queries as they enter the products."""
        return queries if self.norm is None else self.norm.queries(queries)

    def as_keys(self, keys: Float[Tensor, "batch heads length d_head"]) -> Float[Tensor, "batch heads length d_head"]:
        """Return projected keys as they enter the products, and are kept for later queries."""
        return keys if self.norm is None else self.norm.keys(keys)

    def mix(
        self,
        queries: Float[Tensor, "batch heads length d_head"],
        memory: KeysValues,
        mask: Bool[Tensor, "..."] | None,
        *,
        causal: bool = False,
        bias: Float[Tensor, "heads length seen"] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """Attend, apply DropHead, concatenate the heads and project the result."""
        heads = attend(queries, memory.keys, memory.values, mask, causal=causal, dropout=self.dropout, bias=bias)
        return self.output(self.drophead(heads).transpose(1, 2).flatten(2))


class SelfAttention(Attention):
    """Attention whose queries, keys and values come from the same sequence.

    `position`: what it knows of positions, None for nothing.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        bias: str,
        dropout: Dropout,
        drophead: nn.Module,
        norm: AttentionNorm | None = None,
        position: AttentionPosition | None = None,
    ) -> None:
        super().__init__(d_model, num_heads, bias=bias, dropout=dropout, drophead=drophead, norm=norm)
        self.qkv = self.project("query", "key", "value")
        self.position = position

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "batch 1 1 length"] | None = None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch length d_model"]:
        """Attend within x. `mask` hides padding; `causal` hides the future, which includes padding at the end."""
        length = x.size(1)
        queries, memory = self.project_all(x, 0)
        return self.mix(queries, memory, mask, causal=causal, bias=self.position_bias(0, length, length))

    def weights(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "batch 1 1 length"] | None = None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch heads length length"]:
        """Return the weight of each position for each query, softmax(Q K^T / sqrt(d_k)), for inspection."""
        length = x.size(1)
        queries, memory = self.project_all(x, 0)
        bias = self.position_bias(0, length, length)
        return weights(queries, memory.keys, mask, causal=causal, bias=bias)

    def step(
        self, x: Float[Tensor, "rows 1 d_model"], past: "KVCache", position: int
    ) -> Float[Tensor, "rows 1 d_model"]:
        """Attend from the token at `position` alone to the past; adds its key and value to `past`."""
        queries, (keys, values) = self.project_all(x, position)
        past.write(position, keys[:, :, 0], values[:, :, 0])
        return self.mix(queries, past.until(position), None, bias=self.position_bias(position, 1, position + 1))

    def project_all(
        self, x: Float[Tensor, "batch length d_model"], start: int
    ) -> tuple[Float[Tensor, "batch heads length d_head"], KeysValues]:
        """Project the tokens from position `start` on to queries, and to keys and values."""
        queries, keys, values = self.split(self.qkv(x), 3)
        queries, keys = self.as_queries(queries), self.as_keys(keys)
        if self.position is not None:
            queries, keys = self.position.rotate(queries, start), self.position.rotate(keys, start)
        return queries, KeysValues(keys, values)

    def position_bias(self, start: int, length: int, seen: int) -> Float[Tensor, "heads length seen"] | None:
        """Return what positions add to the scores, if anything."""
        return None if self.position is None else self.position.bias(start, length, seen)


class CrossAttention(Attention):
    """Attention whose queries come from the decoder, and keys and values from the encoder's output."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        bias: str,
        dropout: Dropout,
        drophead: nn.Module,
        norm: AttentionNorm | None = None,
    ) -> None:
        super().__init__(d_model, num_heads, bias=bias, dropout=dropout, drophead=drophead, norm=norm)
        self.query = self.project("query")
        self.key_value = self.project("key", "value")

    def project_memory(self, memory: Float[Tensor, "batch src_len d_model"]) -> KeysValues:
        """Project the encoder's output to keys and values, once per sentence for all decoding steps."""
        keys, values = self.split(self.key_value(memory), 2)
        return KeysValues(self.as_keys(keys), values)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        memory: KeysValues,
        mask: Bool[Tensor, "batch 1 1 src_len"] | None,
    ) -> Float[Tensor, "batch length d_model"]:
        (queries,) = self.split(self.query(x), 1)
        return self.mix(self.as_queries(queries), memory, mask)

    def weights(
        self,
        x: Float[Tensor, "batch length d_model"],
        memory: KeysValues,
        mask: Bool[Tensor, "batch 1 1 src_len"] | None,
    ) -> Float[Tensor, "batch heads length src_len"]:
        """Return the weight of each source token for each query, softmax(Q K^T / sqrt(d_k)), for inspection."""
        (queries,) = self.split(self.query(x), 1)
        return weights(self.as_queries(queries), memory.keys, mask)
