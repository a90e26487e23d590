"""Normalisation layers over the features of each token."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

NormFactory = Callable[[], nn.Module]


class ScaleNorm(nn.Module):
    """g * x / ||x|| with one scalar g per site, initially sqrt(d_model) (Nguyen & Salazar 2019, eq. 5).

    `learn_g=False` keeps g at sqrt(d_model) (their table 7). A zero vector stays zero.
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
        # PyTorch's fused kernel does not accept a weight of another precision.
        return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps)


class LayerNorm(nn.LayerNorm):
    """gamma * (x - mean) / std + beta, over the features of one token (Ba et al. 2016)."""

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)
