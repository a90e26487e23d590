"""Residual connections: the one file that decides norm placement, including the final norm of a stack."""

import abc
from collections.abc import Callable
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ablab.transformer.model.norms import NormFactory

Function = Callable[[Tensor], Tensor]


class Residual(nn.Module, abc.ABC):
    """A residual connection around a function, with its norm and the dropout of the sublayer's output.

    A constructor with further arguments gets by name what it asks for: `stack` ("encoder" or "decoder"),
    `encoder_layers`, `decoder_layers`, and `make_norm`, which makes one more norm. `needs`: by group, the option
    without which a placement is not what its paper describes.
    """

    needs: ClassVar[dict[str, str]] = {}

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


class DeepNorm(PostNorm):
    """DeepNorm: norm(alpha x + dropout(f(x))), with initial weights scaled by beta (Wang et al. 2022, figure 2).

    For N encoder and M decoder layers (their encoder-decoder column), and without an encoder (decoder-only):

        encoder:  alpha = 0.81 (N^4 M)^(1/16)    beta = 0.87 (N^4 M)^(-1/16)
        decoder:  alpha = (3 M)^(1/4)            beta = (12 M)^(-1/4)
        alone:    alpha = (2 M)^(1/4)            beta = (8 M)^(-1/4)

    beta is the gain of initialisation.DeepNormInit. alpha is kept with the weights, since those of a pruned model were
    trained under the alpha of the full depth.
    """

    needs: ClassVar = {"init": "deepnorm"}
    alpha: Tensor

    def __init__(
        self, norm: nn.Module, dropout: nn.Module, *, stack: str, encoder_layers: int, decoder_layers: int
    ) -> None:
        super().__init__(norm, dropout)
        alphas = {
            "encoder": 0.81 * (encoder_layers**4 * decoder_layers) ** (1 / 16),
            "decoder": ((3 if encoder_layers else 2) * decoder_layers) ** (1 / 4),
        }
        self.register_buffer("alpha", torch.tensor(alphas[stack], dtype=torch.float64))

    def forward(self, x: Float[Tensor, "*batch d_model"], f: Function) -> Float[Tensor, "*batch d_model"]:
        return self.norm(self.alpha.to(x.dtype) * x + self.dropout(f(x)))


class Sandwich(PreNorm):
    """Norms before and after the sublayer: x + norm_out(dropout(f(norm(x)))); each stack ends with one more norm.

    Sandwich-LN of CogView (Ding et al. 2021, section 3.2), whose code has the dropout inside the second norm, and
    Peri-LN (Kim et al. 2025), which also normalises the embeddings; here they enter as in any other arm.
    """

    def __init__(self, norm: nn.Module, dropout: nn.Module, *, make_norm: NormFactory) -> None:
        super().__init__(norm, dropout)
        self.norm_out = make_norm()

    def forward(self, x: Float[Tensor, "*batch d_model"], f: Function) -> Float[Tensor, "*batch d_model"]:
        return x + self.norm_out(self.dropout(f(self.norm(x))))
