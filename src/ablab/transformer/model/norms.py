"""Normalisation of the features of each token, of queries and keys within attention, and what replaces it."""

import abc
import math
from collections.abc import Callable
from typing import Annotated

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from ablab.fields import Positive

NormFactory = Callable[[], nn.Module]


class ScaleNorm(nn.Module):
    """g * x / ||x|| with one scalar g per site, initially sqrt(d_model) (Nguyen & Salazar 2019, eq. 5).

    `learn_g=False` keeps g at sqrt(d_model): with FixNorm too, whose own g their table 7 learns, and which has none
    here beside that of the last ScaleNorm. A zero vector stays zero.
    """

    EPSILON = 1e-5  # the smallest divisor, as in the paper's code

    def __init__(self, d_model: int, *, learn_g: bool = True) -> None:
        super().__init__()
        g = torch.tensor(math.sqrt(d_model))
        if learn_g:
            self.g = nn.Parameter(g)
        else:
            self.register_buffer("g", g)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        precise = torch.promote_types(x.dtype, torch.float32)
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=precise)
        return x * (self.g / norm.clamp(min=self.EPSILON)).to(x.dtype)


class RMSNorm(nn.RMSNorm):
    """gamma * x / rms(x) with one gamma per feature (Zhang & Sennrich 2019, eq. 4)."""

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model, eps=1e-6)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        # PyTorch's fused kernel does not accept a weight of another precision; on a GPU autocast makes float32 of both.
        return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps).to(x.dtype)


class LayerNorm(nn.LayerNorm):
    """gamma * (x - mean) / std + beta, over the features of one token (Ba et al. 2016)."""

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return super().forward(x).to(x.dtype)  # autocast on a GPU returns float32


class DyT(nn.Module):
    """Dynamic Tanh, gamma * tanh(alpha x) + beta, with one learned alpha per site (Zhu et al. 2025, section 4).

    It replaces a norm without computing any statistic: a token's features are squashed one by one. gamma and beta, one
    per feature, start at 1 and 0, as in the paper. `alpha`: its initial value, above 0; at 0 the gradient of the input
    would vanish.
    """

    def __init__(self, d_model: int, *, alpha: Positive = 0.5) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(float(alpha)))
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        squashed = torch.tanh(self.alpha.to(x.dtype) * x)
        return squashed * self.weight.to(x.dtype) + self.bias.to(x.dtype)


class AttentionNorm(nn.Module, abc.ABC):
    """What is done to the queries and keys of one attention before their products.

    Attention computes softmax(queries(Q) keys(K)^T / sqrt(d_head)) V. Keys pass once, before they are kept for later
    queries, so that a decoding step equals the whole pass.
    """

    @abc.abstractmethod
    def queries(
        self, queries: Float[Tensor, "batch heads length d_head"]
    ) -> Float[Tensor, "batch heads length d_head"]:
        """Return the queries as they enter the products."""

    @abc.abstractmethod
    def keys(self, keys: Float[Tensor, "batch heads length d_head"]) -> Float[Tensor, "batch heads length d_head"]:
        """Return the keys as they enter the products."""


class QKNorm(AttentionNorm):
    """softmax(g q^ k^T) V with q^ = q / ||q|| and k^ = k / ||k|| per head (Henry et al. 2020, section 3).

    One scalar g per attention is learned and replaces 1 / sqrt(d_head). It starts at g0 = log2(L^2 - L), their
    equation for sentences of `length` = L >= 2 tokens; they take the 97.5th percentile of the training sentences (72 to
    79 in their code). A zero vector stays zero. Attention divides the scores by sqrt(d_head), so the queries are
    multiplied by g sqrt(d_head).
    """

    EPSILON = 1e-12  # the smallest divisor, that of torch.nn.functional.normalize in the paper's code

    def __init__(self, *, length: Annotated[int, Field(ge=2)]) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.tensor(math.log2(length**2 - length)))

    def queries(
        self, queries: Float[Tensor, "batch heads length d_head"]
    ) -> Float[Tensor, "batch heads length d_head"]:
        scale = self.g * math.sqrt(queries.size(-1))
        return queries * (scale / self._norm(queries)).to(queries.dtype)

    def keys(self, keys: Float[Tensor, "batch heads length d_head"]) -> Float[Tensor, "batch heads length d_head"]:
        return keys * (1 / self._norm(keys)).to(keys.dtype)

    def _norm(self, x: Tensor) -> Tensor:
        precise = torch.promote_types(x.dtype, torch.float32)
        return torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=precise).clamp(min=self.EPSILON)
