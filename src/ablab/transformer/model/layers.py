"""The encoder layer and the decoder layer.

    encoder:  x -> self-attention -> feed-forward
    decoder:  x -> causal self-attention -> cross-attention -> feed-forward

Each arrow is a residual connection; residual.py decides where its norm stands.
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ablab.transformer.model.attention import CrossAttention, SelfAttention
from ablab.transformer.model.kv_cache import KeysValues, KVCache, Tree
from ablab.transformer.model.residual import Residual


class EncoderLayer(nn.Module):
    """An encoder layer: self-attention, then feed-forward."""

    def __init__(self, attention: SelfAttention, feed_forward: nn.Module, residuals: list[Residual]) -> None:
        super().__init__()
        self.self_attention = attention
        self.feed_forward = feed_forward
        self.around_self_attention, self.around_feed_forward = residuals

    def forward(
        self, x: Float[Tensor, "batch src_len d_model"], mask: Bool[Tensor, "batch 1 1 src_len"] | None
    ) -> Float[Tensor, "batch src_len d_model"]:
        x = self.around_self_attention(x, lambda y: self.self_attention(y, mask))
        return self.around_feed_forward(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """A decoder layer: causal self-attention, cross-attention, then feed-forward."""

    def __init__(
        self,
        self_attention: SelfAttention,
        cross_attention: CrossAttention,
        feed_forward: nn.Module,
        residuals: list[Residual],
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.around_self_attention, self.around_cross_attention, self.around_feed_forward = residuals

    def forward(
        self,
        x: Float[Tensor, "batch tgt_len d_model"],
        memory: Float[Tensor, "batch src_len d_model"],
        mask: Bool[Tensor, "batch 1 1 src_len"] | None,
    ) -> Float[Tensor, "batch tgt_len d_model"]:
        """Compute all target positions at once."""
        x = self.around_self_attention(x, lambda y: self.self_attention(y, causal=True))
        seen = self.cross_attention.project_memory(memory)
        x = self.around_cross_attention(x, lambda y: self.cross_attention(y, seen, mask))
        return self.around_feed_forward(x, self.feed_forward)

    def step(
        self,
        x: Float[Tensor, "batch hypotheses d_model"],
        past: KVCache,
        tree: Tree,
        memory: KeysValues,
        mask: Bool[Tensor, "batch 1 1 src_len"] | None,
    ) -> Float[Tensor, "batch hypotheses d_model"]:
        """Compute one target position. The hypotheses of a sentence share its memory, and `tree` and `past`."""
        x = self.around_self_attention(x, lambda y: self.self_attention.step(y, past, tree))
        x = self.around_cross_attention(x, lambda y: self.cross_attention(y, memory, mask))
        return self.around_feed_forward(x, self.feed_forward)
