"""Residual connections: the one file that decides norm placement, including the final norm of a stack."""

import abc
from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from ablab.model.norms import NormFactory

Function = Callable[[Tensor], Tensor]


class Residual(nn.Module, abc.ABC):
    """A residual connection around a function, with its norm and the dropout of the sublayer's output."""

    def __init__(self, norm: nn.Module, dropout: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = dropout

    @staticmethod
    @abc.abstractmethod
    def final_norm(make_norm: NormFactory) -> nn.Module:
        """Return the module that ends a stack of layers with this placement."""


class PreNorm(Residual):
    """Pre-norm: x + dropout(f(norm(x))); each stack ends with one more norm (Nguyen & Salazar 2019, section 2.1)."""

    @staticmethod
    def final_norm(make_norm: NormFactory) -> nn.Module:
        """Return a norm; without it the residual stream would leave the stack unnormalised."""
        return make_norm()

    def forward(self, x: Float[Tensor, "*batch d_model"], f: Function) -> Float[Tensor, "*batch d_model"]:
        return x + self.dropout(f(self.norm(x)))


class PostNorm(Residual):
    """Post-norm: norm(x + dropout(f(x))) (Vaswani et al. 2017, section 3.1)."""

    @staticmethod
    def final_norm(make_norm: NormFactory) -> nn.Module:
        """Return the identity: the output of the last layer is already normalised."""
        return nn.Identity()

    def forward(self, x: Float[Tensor, "*batch d_model"], f: Function) -> Float[Tensor, "*batch d_model"]:
        return self.norm(x + self.dropout(f(x)))
