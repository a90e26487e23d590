"""Projections of one input as one matrix product."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class Projection(nn.Linear):
    """Square projections of one input, side by side: y_i = W_i x + b_i, some of them without b_i.

    `has_bias` says which have one. `bias` is those that there are, joined, or None: what is left out is no parameter,
    so that no optimiser, norm of gradients or count of weights meets it.
    """

    zeros: Tensor
    places: Tensor

    def __init__(self, d_model: int, has_bias: Sequence[bool]) -> None:
        super().__init__(d_model, len(has_bias) * d_model, bias=any(has_bias))
        self.has_bias = tuple(has_bias)
        if any(has_bias) and not all(has_bias):
            places = torch.arange(self.out_features).view(-1, d_model)[torch.tensor(has_bias)].flatten()
            self.bias = nn.Parameter(torch.zeros(len(places)))
            self.register_buffer("zeros", torch.zeros(self.out_features), persistent=False)
            self.register_buffer("places", places, persistent=False)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch joined"]:
        return F.linear(x, self.weight, self.whole_bias())

    def whole_bias(self) -> Float[Tensor, "joined"] | None:
        """One number for each of the outputs, 0 where a projection has no bias; None if none has."""
        if self.bias is None or all(self.has_bias):
            return self.bias
        return self.zeros.index_copy(0, self.places, self.bias)
