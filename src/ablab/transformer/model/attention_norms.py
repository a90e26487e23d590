"""Normalisation of queries and keys within attention."""

import abc
import math
from typing import Annotated

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn


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
