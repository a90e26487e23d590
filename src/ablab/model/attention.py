"""Multi-head attention: a sequence looks at itself, or at the encoder's output.

softmax(Q K^T / sqrt(d_k)) V (Vaswani et al. 2017, eq. 1), by whatever way is fastest where it runs. Projections of one
input are one matrix product. A mask is True where a query may attend, as in PyTorch's scaled_dot_product_attention.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ablab.model.dropout import Dropout
from ablab.model.projection import Projection


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


BIASES: dict[str, tuple[str, ...]] = {
    "all": ("query", "key", "value", "output"),
    "no_key": ("query", "value", "output"),
    "none": (),
}
"""Projections with a bias. One of the keys adds the same to all scores of a query: softmax takes it away again, and it
would learn from rounding alone. Vaswani et al.'s code (tensor2tensor) has none."""


class KeysValues(NamedTuple):
    """Projected keys and values of one sequence per row: [batch, heads, length, d_head] each."""

    keys: Tensor
    values: Tensor

    def rows(self, index: Tensor) -> "KeysValues":
        """Those of some rows, in a given order."""
        return KeysValues(self.keys.index_select(0, index), self.values.index_select(0, index))


class KVCache:
    """Keys and values of the target so far, for a search that goes token by token and needs no gradients.

    Two buffers, [max_len, rows, heads, d_head] each: positions first, so that what is written is one block, and a
    second pair, so that rows are put into another order by one copy and not by two.
    """

    def __init__(self, like: Tensor, max_len: int, rows: int) -> None:
        shape = (max_len, rows, like.size(1), like.size(3))
        self.here = KeysValues(like.new_empty(shape), like.new_empty(shape))
        self.there = KeysValues(like.new_empty(shape), like.new_empty(shape))

    def write(
        self, position: int, keys: Float[Tensor, "rows heads d_head"], values: Float[Tensor, "rows heads d_head"]
    ) -> None:
        """What was computed for the token at `position`."""
        self.here.keys[position] = keys
        self.here.values[position] = values

    def until(self, position: int) -> KeysValues:
        """Up to and with `position`, as attention takes them."""
        return KeysValues(*(buffer[: position + 1].permute(1, 2, 0, 3) for buffer in self.here))

    def reorder(self, rows: Int[Tensor, "rows"], written: int) -> None:
        """Row i becomes what row `rows[i]` was, as far as positions are written; there may be fewer of them."""
        for old, new in zip(self.here, self.there, strict=True):
            torch.index_select(old[:written], 1, rows, out=new[:written, : len(rows)])
        self.here, self.there = (
            KeysValues(*(buffer[:, : len(rows)] for buffer in pair)) for pair in (self.there, self.here)
        )


class Attention(nn.Module):
    """What both kinds share: splitting into heads, mixing values, dropping heads, and the output projection.

    `bias` is one of `BIASES`; `dropout` falls on the attention weights.
    """

    def __init__(self, d_model: int, num_heads: int, *, bias: str, dropout: Dropout, drophead: nn.Module) -> None:
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

    def project(self, *parts: str) -> Projection:
        """New projections of one input."""
        return Projection(self.d_model, [part in self.biased for part in parts])

    def split(self, x: Float[Tensor, "batch length width"], parts: int) -> tuple[Tensor, ...]:
        """Cut [batch, length, parts * d_model] into `parts` tensors [batch, heads, length, d_head]."""
        cut = x.unflatten(-1, (parts, self.num_heads, -1))
        return tuple(part.transpose(1, 2) for part in cut.unbind(2))

    def mix(
        self,
        queries: Float[Tensor, "batch heads length d_head"],
        memory: KeysValues,
        mask: Bool[Tensor, "..."] | None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch length d_model"]:
        """Attend, drop heads, join them, project."""
        heads = attend(queries, memory.keys, memory.values, mask, causal=causal, dropout=self.dropout)
        return self.output(self.drophead(heads).transpose(1, 2).flatten(2))


class SelfAttention(Attention):
    """Queries, keys and values come from the same sequence."""

    def __init__(self, d_model: int, num_heads: int, *, bias: str, dropout: Dropout, drophead: nn.Module) -> None:
        super().__init__(d_model, num_heads, bias=bias, dropout=dropout, drophead=drophead)
        self.qkv = self.project("query", "key", "value")

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "batch 1 1 length"] | None = None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch length d_model"]:
        """`mask` hides padding; `causal` hides the future. Padding at a sequence's end is in the future."""
        queries, keys, values = self.split(self.qkv(x), 3)
        return self.mix(queries, KeysValues(keys, values), mask, causal=causal)

    def step(
        self, x: Float[Tensor, "rows 1 d_model"], past: "KVCache", position: int
    ) -> Float[Tensor, "rows 1 d_model"]:
        """The same for the token at `position` alone; adds its key and value to the past."""
        queries, keys, values = self.split(self.qkv(x), 3)
        past.write(position, keys[:, :, 0], values[:, :, 0])
        return self.mix(queries, past.until(position), None)


class CrossAttention(Attention):
    """Queries come from the decoder; keys and values from the encoder's output."""

    def __init__(self, d_model: int, num_heads: int, *, bias: str, dropout: Dropout, drophead: nn.Module) -> None:
        super().__init__(d_model, num_heads, bias=bias, dropout=dropout, drophead=drophead)
        self.query = self.project("query")
        self.key_value = self.project("key", "value")

    def project_memory(self, memory: Float[Tensor, "batch src_len d_model"]) -> KeysValues:
        """Keys and values of the encoder's output: once per sentence, whatever is asked of them later."""
        return KeysValues(*self.split(self.key_value(memory), 2))

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        memory: KeysValues,
        mask: Bool[Tensor, "batch 1 1 src_len"] | None,
    ) -> Float[Tensor, "batch length d_model"]:
        (queries,) = self.split(self.query(x), 1)
        return self.mix(queries, memory, mask)

    def weights(
        self,
        x: Float[Tensor, "batch length d_model"],
        memory: KeysValues,
        mask: Bool[Tensor, "batch 1 1 src_len"] | None,
    ) -> Float[Tensor, "batch heads length src_len"]:
        """softmax(Q K^T / sqrt(d_k)), for looking at: how much each query attends to each source token."""
        (queries,) = self.split(self.query(x), 1)
        return weights(queries, memory.keys, mask)
