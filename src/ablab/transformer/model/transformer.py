"""The encoder-decoder Transformer: embeddings, encoder and decoder stacks, and single decoding steps."""

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ablab.transformer.model.embedding import InputEmbedding, TiedEmbeddings
from ablab.transformer.model.kv_cache import KeysValues, KVCache, Tree
from ablab.transformer.model.layerdrop import LayerDrop
from ablab.transformer.model.layers import DecoderLayer, EncoderLayer
from ablab.transformer.model.products import linear
from ablab.transformer.model.tokens import PAD


def padding_mask(tokens: Int[Tensor, "batch length"]) -> Bool[Tensor, "batch 1 1 length"]:
    """Return a mask that is True for tokens and False for padding; broadcasts over heads and queries."""
    return (tokens != PAD)[:, None, None, :]


class Encoder(nn.Module):
    """The encoder stack: the layers that LayerDrop selects, then the final norm."""

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
        """Return a shallower stack that shares its layers with this one."""
        layers = [cast(EncoderLayer, self.layers[index]) for index in kept]
        return Encoder(layers, self.layerdrop.of_layers(kept), self.final_norm)


@dataclass
class DecoderState:
    """The state between two decoding steps, for the hypotheses of each sentence of a batch.

    `past`: per layer, keys and values of the target so far, for the nodes of `tree`.
    `memory`: per layer, keys and values of the source, [batch, heads, src_len, d_head].
    """

    past: list[KVCache]
    memory: list[KeysValues]
    mask: Tensor | None
    tree: Tree = field(default_factory=Tree)

    @property
    def position(self) -> int:
        """Position of the next token."""
        return self.tree.position + 1

    def follow(self, origin: Int[Tensor, "batch hypotheses"]) -> None:
        """Let hypothesis i of each sentence continue the one that was number `origin[:, i]`; there may be more now."""
        self.tree.follow(origin, self.memory[0].keys)

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Keep only these sentences, so that finished ones cost nothing further."""
        for layer in self.past:
            layer.keep(sentences, self.tree.nodes)
        self.tree.keep(sentences)
        self.memory = [layer.rows(sentences) for layer in self.memory]
        if self.mask is not None:
            self.mask = self.mask.index_select(0, sentences)


class Decoder(nn.Module):
    """The decoder stack: the layers that LayerDrop selects, then the final norm."""

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
        """Return a shallower stack that shares its layers with this one."""
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
        """Return the initial state: an empty past for `max_len` steps of `beams` hypotheses, each layer's memory."""
        layers = [cast(DecoderLayer, layer) for layer in self.layers]
        seen = [layer.cross_attention.project_memory(memory) for layer in layers]
        # Where heads were removed, self-attention may have other numbers of them than cross-attention.
        past = [
            KVCache(keys, layer.self_attention.num_heads, max_len * beams)
            for layer, (keys, _) in zip(layers, seen, strict=True)
        ]
        return DecoderState(past, seen, mask)

    def step(
        self, x: Float[Tensor, "batch hypotheses d_model"], state: DecoderState
    ) -> Float[Tensor, "batch hypotheses d_model"]:
        """Compute the next target position of every hypothesis and advance `state`."""
        state.tree.grow(x)
        for index in self.layerdrop():
            x = self.layers[index].step(x, state.past[index], state.tree, state.memory[index], state.mask)
        return self.final_norm(x)


AnyTokenModel = TypeVar("AnyTokenModel", bound="TokenModel")


class TokenModel(nn.Module, abc.ABC):
    """A model that predicts tokens: called with the inputs of a batch, it returns a hidden vector for each position.

    `output_bias`: one number per type to predict that is added to the logits, or None (Vaswani et al. 2017 have none).
    """

    words: TiedEmbeddings
    output_bias: nn.Parameter | None

    @property
    @abc.abstractmethod
    def stacks(self) -> dict[str, nn.ModuleList]:
        """The layers by stack, the first ones first."""

    @abc.abstractmethod
    def of_layers(self: AnyTokenModel, kept: Mapping[str, Sequence[int]]) -> AnyTokenModel:
        """Return a model with only these layers of each stack, which shares all else with this one."""

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """Return one logit per type to predict."""
        return linear(hidden, self.words.output_matrix(), self.output_bias)


class Transformer(TokenModel):
    """The Transformer: source -> encoder -> memory; target so far and memory -> decoder -> logits of the next token."""

    def __init__(
        self,
        words: TiedEmbeddings,
        word_dropout: nn.Module,
        source_input: InputEmbedding,
        target_input: InputEmbedding,
        encoder: Encoder,
        decoder: Decoder,
        output_bias: nn.Parameter | None,
    ) -> None:
        super().__init__()
        self.words = words
        self.word_dropout = word_dropout
        self.source_input = source_input
        self.target_input = target_input
        self.encoder = encoder
        self.decoder = decoder
        self.output_bias = output_bias

    def encode(
        self, src: Int[Tensor, "batch src_len"]
    ) -> tuple[Float[Tensor, "batch src_len d_model"], Bool[Tensor, "batch 1 1 src_len"] | None]:
        """Return the memory and the mask of its tokens; on the CPU None if all are, which is faster."""
        mask = padding_mask(src)
        embedded = self.words.source(self.word_dropout(src))
        # Reading the mask would make other devices wait.
        seen = None if src.device.type == "cpu" and bool(mask.all()) else mask
        return self.encoder(self.source_input(embedded), seen), seen

    def forward(
        self, src: Int[Tensor, "batch src_len"], tgt: Int[Tensor, "batch tgt_len"]
    ) -> Float[Tensor, "batch tgt_len d_model"]:
        """Return hidden vectors that predict the token after each of `tgt`, which starts with begin-of-sentence.

        The loss turns them into logits only where there is a token to predict: see `logits`.
        """
        memory, mask = self.encode(src)
        return self.decoder(self.target_input(self.words.target(self.word_dropout(tgt))), memory, mask)

    @property
    def stacks(self) -> dict[str, nn.ModuleList]:
        return {"encoder": self.encoder.layers, "decoder": self.decoder.layers}

    def of_layers(self, kept: Mapping[str, Sequence[int]]) -> "Transformer":
        return Transformer(
            self.words,
            self.word_dropout,
            self.source_input,
            self.target_input,
            self.encoder.of_layers(kept["encoder"]),
            self.decoder.of_layers(kept["decoder"]),
            self.output_bias,
        )

    def start(self, src: Int[Tensor, "batch src_len"], *, beams: int, max_len: int) -> DecoderState:
        """Encode and return the state to decode up to `max_len` tokens with up to `beams` hypotheses per sentence."""
        memory, mask = self.encode(src)
        return self.decoder.start(memory, mask, beams=beams, max_len=max_len)

    def step(
        self, tokens: Int[Tensor, "batch hypotheses"], state: DecoderState
    ) -> Float[Tensor, "batch hypotheses vocab"]:
        """Return the logits of the token that follows `tokens`, the last one of every hypothesis."""
        embedded = self.words.target(tokens)
        batch, hypotheses, width = embedded.shape
        rows = self.target_input(embedded.reshape(batch * hypotheses, 1, width), start=state.position)
        return self.logits(self.decoder.step(rows.view(batch, hypotheses, width), state))
