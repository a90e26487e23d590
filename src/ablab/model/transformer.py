"""The encoder-decoder Transformer: word tables, two stacks, and one step of decoding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ablab.model.attention import KeysValues, KVCache
from ablab.model.embedding import InputEmbedding, TiedEmbeddings
from ablab.model.layerdrop import LayerDrop
from ablab.model.layers import DecoderLayer, EncoderLayer
from ablab.model.tokens import PAD


def padding_mask(tokens: Int[Tensor, "batch length"]) -> Bool[Tensor, "batch 1 1 length"]:
    """Keys that are tokens, not padding; broadcasts over heads and queries."""
    return (tokens != PAD)[:, None, None, :]


class Encoder(nn.Module):
    """Encoder layers, those that LayerDrop lets run, and the final norm."""

    def __init__(self, layers: list[EncoderLayer], layerdrop: LayerDrop, final_norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.layerdrop = layerdrop
        self.final_norm = final_norm

    def forward(
        self, x: Float[Tensor, "batch src_len d_model"], mask: Bool[Tensor, "batch 1 1 src_len"] | None
    ) -> Float[Tensor, "batch src_len d_model"]:
        for index in self.layerdrop():
            x = self.layerdrop.passed(index, x, self.layers[index](x, mask))
        return self.final_norm(x)

    def of_layers(self, kept: Sequence[int]) -> "Encoder":
        """A shallower stack that shares its layers with this one."""
        layers = [cast(EncoderLayer, self.layers[index]) for index in kept]
        return Encoder(layers, self.layerdrop.of_layers(kept), self.final_norm)


@dataclass
class DecoderState:
    """What decoding remembers between two steps, for `batch` sentences with `beams` hypotheses each.

    `past`: per layer, the target so far, with batch * beams rows.
    `memory`: per layer, keys and values of the source, [batch, heads, src_len, d_head].
    """

    past: list[KVCache]
    memory: list[KeysValues]
    mask: Tensor | None
    beams: int
    position: int = 0

    def reorder(self, rows: Int[Tensor, "rows"]) -> None:
        """Each hypothesis takes over the past of the one it continues; `rows` counts over batch * beams."""
        for layer in self.past:
            layer.reorder(rows, self.position)

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Forget all but these sentences: the finished ones cost nothing further."""
        offsets = torch.arange(self.beams, device=sentences.device)
        rows = (sentences[:, None] * self.beams + offsets).flatten()
        self.reorder(rows)
        self.memory = [layer.rows(sentences) for layer in self.memory]
        if self.mask is not None:
            self.mask = self.mask.index_select(0, sentences)


class Decoder(nn.Module):
    """Decoder layers, those that LayerDrop lets run, and the final norm."""

    def __init__(self, layers: list[DecoderLayer], layerdrop: LayerDrop, final_norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.layerdrop = layerdrop
        self.final_norm = final_norm

    def forward(
        self,
        x: Float[Tensor, "batch tgt_len d_model"],
        memory: Float[Tensor, "batch src_len d_model"],
        mask: Bool[Tensor, "batch 1 1 src_len"] | None,
    ) -> Float[Tensor, "batch tgt_len d_model"]:
        for index in self.layerdrop():
            x = self.layerdrop.passed(index, x, self.layers[index](x, memory, mask))
        return self.final_norm(x)

    def of_layers(self, kept: Sequence[int]) -> "Decoder":
        """A shallower stack that shares its layers with this one."""
        layers = [cast(DecoderLayer, self.layers[index]) for index in kept]
        return Decoder(layers, self.layerdrop.of_layers(kept), self.final_norm)

    def start(
        self,
        memory: Float[Tensor, "batch src_len d_model"],
        mask: Bool[Tensor, "batch 1 1 src_len"] | None,
        *,
        beams: int,
        max_len: int,
    ) -> DecoderState:
        """An empty past of `max_len` positions for each beam, and the source as every layer sees it."""
        seen = [cast(DecoderLayer, layer).cross_attention.project_memory(memory) for layer in self.layers]
        past = [KVCache(keys, max_len, len(keys) * beams) for keys, _ in seen]
        return DecoderState(past, seen, mask, beams)

    def step(
        self, x: Float[Tensor, "batch beams d_model"], state: DecoderState
    ) -> Float[Tensor, "batch beams d_model"]:
        """The next target position of every hypothesis."""
        for index in self.layerdrop():
            x = self.layers[index].step(x, state.past[index], state.position, state.memory[index], state.mask)
        state.position += 1
        return self.final_norm(x)


class Transformer(nn.Module):
    """source tokens -> encoder -> memory; target tokens so far, memory -> decoder -> the next token's logits."""

    def __init__(
        self,
        words: TiedEmbeddings,
        word_dropout: nn.Module,
        source_input: InputEmbedding,
        target_input: InputEmbedding,
        encoder: Encoder,
        decoder: Decoder,
    ) -> None:
        super().__init__()
        self.words = words
        self.word_dropout = word_dropout
        self.source_input = source_input
        self.target_input = target_input
        self.encoder = encoder
        self.decoder = decoder

    def encode(
        self, src: Int[Tensor, "batch src_len"]
    ) -> tuple[Float[Tensor, "batch src_len d_model"], Bool[Tensor, "batch 1 1 src_len"] | None]:
        """The memory, and which of its positions are tokens (None: all are, and attention takes its fast way)."""
        mask = padding_mask(src)
        embedded = self.words.source(self.word_dropout(src))
        # Another device would have to be waited for to know.
        seen = None if src.device.type == "cpu" and bool(mask.all()) else mask
        return self.encoder(self.source_input(embedded), seen), seen

    def forward(
        self, src: Int[Tensor, "batch src_len"], tgt: Int[Tensor, "batch tgt_len"]
    ) -> Float[Tensor, "batch tgt_len d_model"]:
        """Hidden vectors that predict the token after each of `tgt`, which starts with begin-of-sentence.

        They become logits where there is a token to predict, and nowhere else: see `logits`.
        """
        memory, mask = self.encode(src)
        return self.decoder(self.target_input(self.words.target(self.word_dropout(tgt))), memory, mask)

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """One score per type of the target vocabulary."""
        return F.linear(hidden, self.words.output_matrix())

    def start(self, src: Int[Tensor, "batch src_len"], *, beams: int, max_len: int) -> DecoderState:
        """Encode, and get ready to decode up to `max_len` tokens with `beams` hypotheses a sentence."""
        memory, mask = self.encode(src)
        return self.decoder.start(memory, mask, beams=beams, max_len=max_len)

    def step(self, tokens: Int[Tensor, "batch beams"], state: DecoderState) -> Float[Tensor, "batch beams vocab"]:
        """Logits of the token that follows `tokens`, the last one of every hypothesis."""
        embedded = self.words.target(tokens)
        batch, beams, width = embedded.shape
        rows = self.target_input(embedded.reshape(batch * beams, 1, width), start=state.position)
        return self.logits(self.decoder.step(rows.view(batch, beams, width), state))
