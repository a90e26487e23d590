"""Multi-head self-attention and cross-attention, and the scaled dot products in them, by the fastest way here.

Projections of one input share one matrix product. A mask is True where a query may attend, as in PyTorch's
scaled_dot_product_attention."""

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ablab.transformer.model.dropout import Dropout
from ablab.transformer.model.kv_cache import KeysValues, KVCache, Tree
from ablab.transformer.model.norms import AttentionNorm
from ablab.transformer.model.positions import AttentionPosition
from ablab.transformer.model.projection import Projection

BIASES: dict[str, tuple[str, ...]] = {
    "all": ("query", "key", "value", "output"),
    "no_key": ("query", "value", "output"),
    "none": (),
}
"""Projections that have a bias, by option. A key bias adds the same number to all scores of a query; softmax cancels
it, so it would learn from rounding alone, unless keys are normalised or rotated. The code of Vaswani et al.
(tensor2tensor) has no biases."""

# cuDNN's attention builds a plan for each shape that it has not seen, which takes about a second with torch 2.11
# (modelscope/FunASR issue 3704), and hardly two batches of sentences have the same.
torch.backends.cuda.enable_cudnn_sdp(False)


class Attention(nn.Module):
    """Base class of self- and cross-attention: splits heads, mixes values, drops heads, projects the output.

    `bias` is one of `BIASES`; `dropout` applies to the attention weights; `norm` to queries and keys, None for neither.
    Raises ValueError for an unknown `bias`, or when `num_heads` does not divide `d_model`.
    """

    INPUTS: ClassVar[Mapping[str, tuple[str, ...]]]
    """What each input is projected to: the name of the joined projection, and its parts."""

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
        for name, parts in self.INPUTS.items():
            setattr(self, name, self.project(*parts))

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
        bias: Float[Tensor, "#batch #heads #length seen"] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """Attend, apply DropHead, concatenate the heads and project the result."""
        heads = attend(queries, memory.keys, memory.values, mask, causal=causal, dropout=self.dropout, bias=bias)
        return self.output(self.drophead(heads).transpose(1, 2).flatten(2))


class SelfAttention(Attention):
    """Attention whose queries, keys and values come from the same sequence.

    `position`: what it knows of positions, None for nothing.
    """

    INPUTS: ClassVar = {"qkv": ("query", "key", "value")}
    qkv: Projection

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
        self, x: Float[Tensor, "batch hypotheses d_model"], past: KVCache, tree: Tree
    ) -> Float[Tensor, "batch hypotheses d_model"]:
        """Attend from the newest token of each hypothesis to its path in `tree`; adds its key and value to `past`."""
        queries, memory = self.project_all(x.flatten(0, 1)[:, None], tree.position)
        queries, keys, values = (by_sentence(rows, x.size(1)) for rows in (queries, *memory))
        past.write(KeysValues(keys, values), tree.nodes)
        return self.mix(queries, past.until(tree.nodes), None, bias=self.bias_in(tree))

    def project_all(
        self, x: Float[Tensor, "batch length d_model"], start: int
    ) -> tuple[Float[Tensor, "batch heads length d_head"], KeysValues]:
        """Project the tokens from position `start` on to queries, and to keys and values."""
        queries, keys, values = self.split(self.qkv(x), 3)
        queries, keys = self.as_queries(queries), self.as_keys(keys)
        if self.position is not None:
            queries, keys = self.position.rotate(queries, start), self.position.rotate(keys, start)
        return queries, KeysValues(keys, values)

    def position_bias(self, start: int, length: int, seen: int) -> Float[Tensor, "1 heads length seen"] | None:
        """Return what positions add to the scores, if anything."""
        bias = None if self.position is None else self.position.bias(start, length, seen)
        return None if bias is None else bias[None]

    def bias_in(self, tree: Tree) -> Float[Tensor, "#batch #heads #hypotheses nodes"] | None:
        """Return what is added to the scores of the newest tokens: what hides other paths, and what positions add."""
        hidden = None if tree.hidden is None else tree.hidden[:, None]
        bias = self.position_bias(tree.position, 1, tree.position + 1)
        if bias is None:
            return hidden
        bias = bias[..., tree.depths]
        return bias if hidden is None else bias.to(hidden.dtype) + hidden


def by_sentence(
    rows: Float[Tensor, "rows heads 1 d_head"], hypotheses: int
) -> Float[Tensor, "batch heads {hypotheses} d_head"]:
    """Place the newest tokens of a sentence's hypotheses side by side, as queries or keys of one sequence."""
    return rows[:, :, 0].unflatten(0, (-1, hypotheses)).transpose(1, 2)


class CrossAttention(Attention):
    """Attention whose queries come from the decoder, and keys and values from the encoder's output."""

    INPUTS: ClassVar = {"query": ("query",), "key_value": ("key", "value")}
    query: Projection
    key_value: Projection

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
    """Return softmax(Q K^T / sqrt(d_k)) V (Vaswani et al. 2017, eq. 1).

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
