"""Several projections of one input, computed as one matrix product."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ablab.transformer.model.products import Linear, linear


class Projection(Linear):
    """Concatenated projections of one input: y_i = W_i x + b_i, some without b_i.

    `has_bias` tells for each projection whether it has a bias. `bias` joins the existing biases, or is None. A missing
    bias is no parameter, so the optimiser, the gradient norm and the parameter count ignore it. `width`: features of
    each y_i, by default `d_model`; another where heads were removed.
    """

    zeros: Tensor
    places: Tensor

    def __init__(self, d_model: int, has_bias: Sequence[bool], width: int | None = None) -> None:
        width = d_model if width is None else width
        super().__init__(d_model, len(has_bias) * width, bias=any(has_bias))
        self.has_bias = tuple(has_bias)
        if any(has_bias) and not all(has_bias):
            places = torch.arange(self.out_features).view(-1, width)[torch.tensor(has_bias)].flatten()
            self.bias = nn.Parameter(torch.zeros(len(places)))
            self.register_buffer("zeros", torch.zeros(self.out_features), persistent=False)
            self.register_buffer("places", places, persistent=False)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch joined"]:
        return linear(x, self.weight, self.whole_bias())

    def whole_bias(self) -> Float[Tensor, "joined"] | None:
        """Return one number per output, 0 where a projection has no bias; None if no projection has one."""
        if self.bias is None or all(self.has_bias):
            return self.bias
        return self.zeros.index_copy(0, self.places, self.bias)
