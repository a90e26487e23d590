"""Feed-forward networks, applied to each token by itself."""

import abc

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ablab.transformer.model.products import Linear


class FeedForward(nn.Module, abc.ABC):
    """W2 dropout(h(x)) + b2, where a kind says what the hidden vector h(x) of `d_ff` features is."""

    def __init__(self, d_model: int, d_ff: int, dropout: nn.Module) -> None:
        super().__init__()
        self.inner = Linear(d_model, d_ff)
        self.outer = Linear(d_ff, d_model)
        self.dropout = dropout

    @abc.abstractmethod
    def hidden(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_ff"]:
        """Return h(x)."""

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return self.outer(self.dropout(self.hidden(x)))


class ReLU(FeedForward):
    """h(x) = max(0, W1 x + b1) (Vaswani et al. 2017, eq. 2)."""

    def hidden(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_ff"]:
        return F.relu(self.inner(x))


class GELU(FeedForward):
    """h(x) = y Phi(y) with y = W1 x + b1 and the normal distribution function Phi (Hendrycks & Gimpel 2016)."""

    def hidden(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_ff"]:
        return F.gelu(self.inner(x))


class GELUTanh(FeedForward):
    """GELU by 0.5 y (1 + tanh(sqrt(2 / pi) (y + 0.044715 y^3))), that of GPT-2 (Hendrycks & Gimpel 2016, section 2)."""

    def hidden(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_ff"]:
        return F.gelu(self.inner(x), approximate="tanh")


class SwiGLU(FeedForward):
    """h(x) = swish(W x + b) * (V x + c), with swish(y) = y sigmoid(y) (Shazeer 2020, eq. 6).

    W is `gate`, V is `inner`. The paper has no biases; here every matrix has one, as in the other kinds. It has three
    matrices where they have two, so the paper takes 2/3 of the width to compare at equal size. `d_ff` is the width of
    the others; this kind takes the whole number nearest to

        d_ff (2 d_model + 1) / (3 d_model + 2),

    at which the parameters of both, 3 d w + 2 w + d here and 2 d f + f + d there, are equal.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: nn.Module) -> None:
        width = self.width(d_model, d_ff)
        super().__init__(d_model, width, dropout)
        self.gate = Linear(d_model, width)

    @staticmethod
    def width(d_model: int, d_ff: int) -> int:
        """Return the hidden features at which the parameters are nearest to those of ReLU with `d_ff`; at least 1."""
        return max(1, round(d_ff * (2 * d_model + 1) / (3 * d_model + 2)))

    def hidden(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch width"]:
        return F.silu(self.gate(x)) * self.inner(x)
