"""Normalisation layers over the features of each token, and what replaces them."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ablab.fields import Positive

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
