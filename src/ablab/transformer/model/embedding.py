"""Word embeddings: the vectors of input tokens, and the output matrix that turns hidden vectors into logits."""

import math
from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ablab.fields import Formerly
from ablab.transformer.model.modes import as_products_take_it


class Embedding(nn.Module):
    """A table of word vectors, one row per type, for the input, the output or both (tied)."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))

    def forward(self, tokens: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Return the rows of the tokens times sqrt(d_model) (Vaswani et al. 2017, section 3.4)."""
        return F.embedding(tokens, self.weight) * math.sqrt(self.weight.size(1))

    def matrix(self) -> Float[Tensor, "vocab d_model"]:
        """Return the output matrix: the rows without scale (Vaswani et al. 2017, section 3.4)."""
        return self.weight


class PlainEmbedding(Embedding):
    """A table whose rows enter as they are (Radford et al. 2019): no sqrt(d_model) at the input."""

    def forward(self, tokens: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Return the rows of the tokens."""
        return F.embedding(tokens, self.weight)


class FixNormEmbedding(Embedding):
    """A table whose rows are normalised to norm 1 at each use (FixNorm; Nguyen & Salazar 2019, section 2.3).

    It has no scale of its own: after ScaleNorm the logit is g * cos(w, x), and that norm's g is the only scale. At the
    input a row is multiplied by sqrt(d_model), as in `Embedding`. A zero row stays zero.

    `initial`: the initial rows, `uniform` in +-0.01 as in the paper's code, or `normal` as of every other table. Their
    norm decides how fast rows turn under an optimiser whose steps have a given size.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        initial: Annotated[Literal["uniform", "normal"], Formerly("uniform")] = "uniform",
    ) -> None:
        super().__init__(vocab_size, d_model)
        self.initial = initial

    def forward(self, tokens: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Return the normalised rows of the tokens times sqrt(d_model)."""
        return F.normalize(F.embedding(tokens, self.weight), dim=-1) * math.sqrt(self.weight.size(1))

    def matrix(self) -> Float[Tensor, "vocab d_model"]:
        """Return all rows, normalised."""
        return F.normalize(self.weight, dim=-1)


class InputEmbedding(nn.Module):
    """The input of a stack: dropout(embedding * sqrt(d_model) + position).

    `positions` is None where self-attention knows the positions; nothing is added then.
    """

    def __init__(self, positions: nn.Module | None, dropout: nn.Module) -> None:
        super().__init__()
        self.positions = positions
        self.dropout = dropout

    def forward(
        self, embedded: Float[Tensor, "batch length d_model"], start: int = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """Add positions to scaled embeddings. `start`: position of the first token, above 0 in later decoding steps."""
        if self.positions is not None:
            embedded = embedded + self.positions(start, embedded.size(1))
        return self.dropout(as_products_take_it(embedded))


class TiedEmbeddings(nn.Module):
    """The embedding tables, each stored once and assigned to source, target and output by `tie`.

    `make_table` makes a table for a number of types. `tie` is `all` (one table), `source_target` (separate output),
    `target_output` (separate source) or `none`. Raises
    ValueError when source and target share a table but their vocabularies differ in size.
    """

    ROLES: ClassVar = {
        "all": ("shared", "shared", "shared"),
        "source_target": ("shared", "shared", "output"),
        "target_output": ("source", "shared", "shared"),
        "none": ("source", "target", "output"),
    }

    def __init__(self, src_vocab: int, tgt_vocab: int, make_table: Callable[[int], Embedding], *, tie: str) -> None:
        super().__init__()
        self.source_name, self.target_name, self.output_name = self.ROLES[tie]
        if self.source_name == self.target_name and src_vocab != tgt_vocab:
            raise ValueError(f"{tie=} needs one vocabulary for both languages, got {src_vocab=}, {tgt_vocab=}.")
        sizes = dict(zip(self.ROLES[tie], (src_vocab, tgt_vocab, tgt_vocab), strict=True))
        self.tables = nn.ModuleDict({name: make_table(size) for name, size in sizes.items()})

    def source(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length d_model"]:
        embedded: Tensor = self.tables[self.source_name](tokens)
        return embedded

    def target(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length d_model"]:
        embedded: Tensor = self.tables[self.target_name](tokens)
        return embedded

    def output_matrix(self) -> Float[Tensor, "vocab d_model"]:
        """Return the matrix that turns a hidden vector into logits."""
        table = self.tables[self.output_name]
        assert isinstance(table, Embedding)
        return table.matrix()
