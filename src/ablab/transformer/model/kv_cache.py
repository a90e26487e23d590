"""Keys and values: of one input, and of the target so far while it is decoded."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class KeysValues(NamedTuple):
    """Projected keys and values, one sequence per row: [batch, heads, length, d_head] each."""

    keys: Tensor
    values: Tensor

    def rows(self, index: Tensor) -> "KeysValues":
        """Select the rows `index`, in that order."""
        return KeysValues(self.keys.index_select(0, index), self.values.index_select(0, index))


@dataclass
class Tree:
    """The tokens decoded so far. The hypotheses of a sentence share beginnings, so that their tokens form a tree.

    A step adds a node per hypothesis, all at one position. A hypothesis attends to the nodes on its own path:
    `hidden` is 0 there and -inf elsewhere, [batch, hypotheses, nodes], or None while each sentence has one hypothesis.
    Nodes never move: when hypotheses continue others, only `hidden` changes. `position`: that of the newest nodes.
    """

    nodes: int = 0
    position: int = -1
    hidden: Tensor | None = None
    depths: list[int] = field(default_factory=list)

    def grow(self, like: Float[Tensor, "batch hypotheses d_model"]) -> None:
        """Add a node to the path of every hypothesis. `like`: their vectors, whose type and device are taken."""
        batch, hypotheses = like.shape[:2]
        if hypotheses > 1:
            own = torch.eye(hypotheses, dtype=like.dtype, device=like.device).log()
            before = like.new_zeros(batch, hypotheses, self.nodes) if self.hidden is None else self.hidden
            self.hidden = torch.cat([before, own.expand(batch, -1, -1)], dim=2)
        self.nodes += hypotheses
        self.position += 1
        self.depths += hypotheses * [self.position]

    def follow(self, origin: Int[Tensor, "batch hypotheses"], like: Tensor) -> None:
        """Let hypothesis i of each sentence continue the one that was number `origin[:, i]`."""
        batch, hypotheses = origin.shape
        if self.hidden is not None:
            self.hidden = self.hidden.gather(1, origin[:, :, None].expand(-1, -1, self.nodes))
        elif hypotheses > 1:
            self.hidden = like.new_zeros(batch, hypotheses, self.nodes)

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Keep only these sentences."""
        if self.hidden is not None:
            self.hidden = self.hidden.index_select(0, sentences)


class KVCache:
    """Keys and values of a layer for the nodes of a `Tree`, for token-by-token decoding without gradients.

    Holds buffers [batch, heads, most, d_head]. `like`: the type and width of a head's vectors, [batch, ..., d_head];
    `most`: the most nodes.
    """

    def __init__(self, like: Tensor, heads: int, most: int) -> None:
        shape = (len(like), heads, most, like.size(-1))
        self.held = KeysValues(like.new_empty(shape), like.new_empty(shape))

    def write(self, new: KeysValues, nodes: int) -> None:
        """Store the keys and values of the newest nodes, [batch, heads, hypotheses, d_head]; `nodes`: all with them."""
        for buffer, vectors in zip(self.held, new, strict=True):
            buffer[:, :, nodes - vectors.size(2) : nodes] = vectors

    def until(self, nodes: int) -> KeysValues:
        """Return keys and values of all nodes."""
        return KeysValues(*(buffer[:, :, :nodes] for buffer in self.held))

    def keep(self, sentences: Int[Tensor, "kept"], nodes: int) -> None:
        """Keep only these sentences, so that finished ones cost nothing further."""
        for buffer in self.held:
            buffer[: len(sentences), :, :nodes] = buffer[:, :, :nodes].index_select(0, sentences)
        self.held = KeysValues(*(buffer[: len(sentences)] for buffer in self.held))
