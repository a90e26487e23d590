"""The decoder-only Transformer: one stack of causal layers, over documents that are packed into rows.

    x -> causal self-attention -> feed-forward

Each arrow is a residual connection; residual.py decides where its norm stands. Attention never crosses a document.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ablab.transformer.model.attention import SelfAttention
from ablab.transformer.model.embedding import InputEmbedding, TiedEmbeddings
from ablab.transformer.model.kv_cache import KVCache, Tree
from ablab.transformer.model.layerdrop import LayerDrop
from ablab.transformer.model.modes import as_products_take_it
from ablab.transformer.model.positions import NoPosition, RotaryPosition
from ablab.transformer.model.residual import Residual
from ablab.transformer.model.transformer import TokenModel

RELATIVE = (RotaryPosition, NoPosition)
"""What gives the same scores wherever in its row a document begins."""


class PackedDocuments(NamedTuple):
    """Documents that lie side by side in rows.

    `place`: of each token in its document, from 0. `visible`: True where a query may attend: within its own document,
    and not to what comes later.
    """

    place: Int[Tensor, "batch length"]
    visible: Bool[Tensor, "batch 1 length length"]

    @classmethod
    def of(cls, numbers: Int[Tensor, "batch length"]) -> "PackedDocuments":
        """`numbers`: that of each token's document; equal neighbours belong together."""
        at = torch.arange(numbers.size(1), device=numbers.device)
        begins = torch.ones_like(numbers, dtype=torch.bool)
        begins[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
        first = torch.where(begins, at, 0).cummax(dim=1).values
        visible = (first[:, :, None] <= at) & (at <= at[:, None])
        return cls(at - first, visible[:, None])

    @property
    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Row, begin and end of each document, in order."""
        for row, places in enumerate(self.place.tolist()):
            begins = [at for at, place in enumerate(places) if place == 0]
            yield from ((row, begin, end) for begin, end in zip(begins, [*begins[1:], len(places)], strict=True))


class TokenInput(InputEmbedding):
    """The input of the stack: dropout(embedding + position), where positions begin anew in each document."""

    def forward(
        self, embedded: Float[Tensor, "batch length d_model"], start: int = 0, documents: PackedDocuments | None = None
    ) -> Float[Tensor, "batch length d_model"]:
        """Add positions to embeddings. `start`: position of the first token, where rows are one document each."""
        if documents is None or self.positions is None:
            return super().forward(embedded, start)
        positions = self.positions(0, embedded.size(1))
        return self.dropout(as_products_take_it(embedded + F.embedding(documents.place, positions)))


class CausalLayer(nn.Module):
    """A layer of a decoder-only stack: causal self-attention, then feed-forward."""

    def __init__(self, attention: SelfAttention, feed_forward: nn.Module, residuals: list[Residual]) -> None:
        super().__init__()
        self.self_attention = attention
        self.feed_forward = feed_forward
        self.around_self_attention, self.around_feed_forward = residuals

    def forward(
        self, x: Float[Tensor, "batch length d_model"], documents: PackedDocuments | None
    ) -> Float[Tensor, "batch length d_model"]:
        """Compute all positions at once. `documents`: None where each row is one."""
        x = self.around_self_attention(x, lambda y: _attend(self.self_attention, y, documents))
        return self.around_feed_forward(x, self.feed_forward)

    def read(
        self, x: Float[Tensor, "batch length d_model"], state: "LanguageModelState"
    ) -> Float[Tensor, "batch length d_model"]:
        """Compute the positions of a beginning, and keep its keys and values, as the next layer's past."""

        def attend(y: Tensor) -> Tensor:
            queries, memory = self.self_attention.project_all(y, 0)
            state.past.append(KVCache(memory.keys, self.self_attention.num_heads, state.most))
            state.past[-1].write(memory, state.tree.nodes)
            bias = self.self_attention.position_bias(0, y.size(1), y.size(1))
            return self.self_attention.mix(queries, memory, None, causal=True, bias=bias)

        x = self.around_self_attention(x, attend)
        return self.around_feed_forward(x, self.feed_forward)

    def step(self, x: Float[Tensor, "batch 1 d_model"], past: KVCache, tree: Tree) -> Float[Tensor, "batch 1 d_model"]:
        """Compute one position."""
        x = self.around_self_attention(x, lambda y: self.self_attention.step(y, past, tree))
        return self.around_feed_forward(x, self.feed_forward)


def reads_apart(attention: SelfAttention) -> bool:
    """Return whether it reads each document of a row by itself, which is slow.

    What a part of the user's knows of positions may begin with those of the row.
    """
    return attention.position is not None and type(attention.position) not in RELATIVE


def _attend(
    attention: SelfAttention, x: Float[Tensor, "batch length d_model"], documents: PackedDocuments | None
) -> Float[Tensor, "batch length d_model"]:
    if documents is None:
        return attention(x, causal=True)
    if not reads_apart(attention):
        queries, memory = attention.project_all(x, 0)
        return attention.mix(queries, memory, documents.visible)
    apart = [attention(x[row : row + 1, begin:end], causal=True)[0] for row, begin, end in documents.spans]
    return torch.cat(apart).view_as(x)


@dataclass
class LanguageModelState:
    """The state between two decoding steps.

    `past`: per layer, keys and values of the tokens so far, which are the nodes of `tree`, a path. `most`: the most
    tokens, those of beginnings included.
    """

    most: int
    past: list[KVCache] = field(default_factory=list)
    tree: Tree = field(default_factory=Tree)


class CausalStack(nn.Module):
    """The stack: the layers that LayerDrop selects, then the final norm."""

    def __init__(self, layers: list[CausalLayer], layerdrop: LayerDrop, final_norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.layerdrop = layerdrop
        self.final_norm = final_norm

    def forward(
        self, x: Float[Tensor, "batch length d_model"], documents: PackedDocuments | None
    ) -> Float[Tensor, "batch length d_model"]:
        for index in self.layerdrop():
            x = self.layerdrop.passed(index, x, self.layers[index](x, documents))
        return self.final_norm(x)

    def of_layers(self, kept: Sequence[int]) -> "CausalStack":
        """Return a shallower stack that shares its layers with this one."""
        layers = [cast(CausalLayer, self.layers[index]) for index in kept]
        return CausalStack(layers, self.layerdrop.of_layers(kept), self.final_norm)

    def read(
        self, x: Float[Tensor, "batch length d_model"], state: LanguageModelState
    ) -> Float[Tensor, "batch length d_model"]:
        """Compute a beginning and fill the empty `state` with it."""
        length = x.size(1)
        state.tree = Tree(nodes=length, position=length - 1, depths=list(range(length)))
        for layer in self.layers:
            x = cast(CausalLayer, layer).read(x, state)
        return self.final_norm(x)

    def step(self, x: Float[Tensor, "batch 1 d_model"], state: LanguageModelState) -> Float[Tensor, "batch 1 d_model"]:
        """Compute the next position and advance `state`."""
        state.tree.grow(x)
        for layer, past in zip(self.layers, state.past, strict=True):
            x = cast(CausalLayer, layer).step(x, past, state.tree)
        return self.final_norm(x)


class LanguageModel(TokenModel):
    """A decoder-only Transformer: the tokens so far -> decoder -> logits of the next token."""

    def __init__(
        self,
        words: TiedEmbeddings,
        target_input: TokenInput,
        decoder: CausalStack,
        output_bias: nn.Parameter | None,
    ) -> None:
        super().__init__()
        self.words = words
        self.target_input = target_input
        self.decoder = decoder
        self.output_bias = output_bias

    @property
    def stacks(self) -> dict[str, nn.ModuleList]:
        return {"decoder": self.decoder.layers}

    def of_layers(self, kept: Mapping[str, Sequence[int]]) -> "LanguageModel":
        stack = self.decoder.of_layers(kept["decoder"])
        return LanguageModel(self.words, self.target_input, stack, self.output_bias)

    @property
    def decoder_width(self) -> int:
        """d_model."""
        return self.words.output_matrix().size(1)

    def forward(
        self, tokens: Int[Tensor, "batch length"], numbers: Int[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "batch length d_model"]:
        """Return hidden vectors that predict the token after each; the loss turns them into logits: see `logits`.

        `numbers`: that of each token's document in its row; None where each row is one.
        """
        # Reading the numbers would make other devices wait.
        if numbers is not None and numbers.device.type == "cpu" and bool((numbers == numbers[:, :1]).all()):
            numbers = None
        documents = None if numbers is None else PackedDocuments.of(numbers)
        return self.decoder(self.target_input(self.words.target(tokens), documents=documents), documents)

    def start(
        self, tokens: Int[Tensor, "batch length"], *, max_len: int
    ) -> tuple[Float[Tensor, "batch vocab"], LanguageModelState]:
        """Read beginnings of one length; return the logits of the next token, and the state to go on from.

        Each may have up to `max_len` more tokens.
        """
        state = LanguageModelState(tokens.size(1) + max_len)
        hidden = self.decoder.read(self.target_input(self.words.target(tokens)), state)
        return self.logits(hidden[:, -1]), state

    def step(self, tokens: Int[Tensor, "batch"], state: LanguageModelState) -> Float[Tensor, "batch vocab"]:
        """Return the logits of the token that follows `tokens`, the last ones so far."""
        x = self.target_input(self.words.target(tokens[:, None]), state.tree.position + 1)
        return self.logits(self.decoder.step(x, state)[:, 0])
