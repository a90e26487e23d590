"""Word vectors: what a token is on its way in, and what a hidden vector is compared with on its way out."""

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ablab.model.modes import as_products_take_it


class Embedding(nn.Module):
    """A table of word vectors, one row per type; usable at the input, at the output, or at both (tied)."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))

    def forward(self, tokens: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Rows of the tokens, times sqrt(d_model) (Vaswani et al. 2017, section 3.4)."""
        return F.embedding(tokens, self.weight) * math.sqrt(self.weight.size(1))

    def matrix(self) -> Float[Tensor, "vocab d_model"]:
        """The rows that hidden vectors are multiplied with; no scale (Vaswani et al. 2017, section 3.4)."""
        return self.weight


class FixNormEmbedding(Embedding):
    """Rows of norm 1, normalised at each use, and no scale of its own (Nguyen & Salazar 2019, section 2.3).

    With ScaleNorm before it the logit is g * cos(w, x), and that norm's g is the only scale. At the input the
    row is multiplied by sqrt(d_model) like any other. A zero row stays zero.
    """

    def forward(self, tokens: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Normalised rows of the tokens, times sqrt(d_model)."""
        return F.normalize(F.embedding(tokens, self.weight), dim=-1) * math.sqrt(self.weight.size(1))

    def matrix(self) -> Float[Tensor, "vocab d_model"]:
        """All rows, normalised."""
        return F.normalize(self.weight, dim=-1)


class InputEmbedding(nn.Module):
    """dropout(embedding * sqrt(d_model) + position): how a sequence enters a stack."""

    def __init__(self, positions: nn.Module, dropout: nn.Module) -> None:
        super().__init__()
        self.positions = positions
        self.dropout = dropout

    def forward(
        self, embedded: Float[Tensor, "batch length d_model"], start: int = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """`start`: the position of the first token, above 0 when decoding goes on."""
        return self.dropout(as_products_take_it(embedded + self.positions(start, embedded.size(1))))


class TiedEmbeddings(nn.Module):
    """The vocabulary's tables, each stored once, and which of them serves source, target and output.

    `tie` is `all` (one table), `source_target` (output apart), `target_output` (source apart) or `none`.
    """

    ROLES: ClassVar = {
        "all": ("shared", "shared", "shared"),
        "source_target": ("shared", "shared", "output"),
        "target_output": ("source", "shared", "shared"),
        "none": ("source", "target", "output"),
    }

    def __init__(
        self, src_vocab: int, tgt_vocab: int, d_model: int, *, tie: str, table: type[Embedding] = Embedding
    ) -> None:
        super().__init__()
        self.source_name, self.target_name, self.output_name = self.ROLES[tie]
        if self.source_name == self.target_name and src_vocab != tgt_vocab:
            raise ValueError(f"{tie=} needs one vocabulary for both languages, got {src_vocab=}, {tgt_vocab=}.")
        sizes = dict(zip(self.ROLES[tie], (src_vocab, tgt_vocab, tgt_vocab), strict=True))
        self.tables = nn.ModuleDict({name: table(size, d_model) for name, size in sizes.items()})

    def source(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length d_model"]:
        """Source tokens as vectors."""
        embedded: Tensor = self.tables[self.source_name](tokens)
        return embedded

    def target(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length d_model"]:
        """Target tokens as vectors."""
        embedded: Tensor = self.tables[self.target_name](tokens)
        return embedded

    def output_matrix(self) -> Float[Tensor, "vocab d_model"]:
        """The matrix that turns a hidden vector into logits."""
        table = self.tables[self.output_name]
        assert isinstance(table, Embedding)
        return table.matrix()


EMBEDDINGS: dict[str, type[Embedding]] = {"scaled": Embedding, "fixnorm": FixNormEmbedding}
