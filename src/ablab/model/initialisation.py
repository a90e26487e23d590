"""Initial weights, apart from the architecture, since they are the hidden confounder of norm placement.

Every parameter draws from a stream that bears its own name: arms under one seed start from equal shared weights.
"""

import math

import torch
from torch import nn

from ablab.model.attention import Attention
from ablab.model.embedding import Embedding, FixNormEmbedding
from ablab.model.layers import FeedForward
from ablab.model.positions import LearnedPositions
from ablab.seeding import derive


class Xavier:
    """Normal with std sqrt(2 / (in + out)) for every matrix (Glorot & Bengio 2010, eq. 12).

    A joined matrix counts as the square ones it is made of: joining must not change where training starts.
    """

    def std(self, module: Attention | FeedForward, linear: nn.Linear) -> float:
        """Std of one matrix of an attention or feed-forward module."""
        if isinstance(module, Attention):
            return self.attention_std(linear.in_features)
        return math.sqrt(2 / (linear.in_features + linear.out_features))

    def attention_std(self, d_model: int) -> float:
        """Std of the query, key, value and output projections."""
        return math.sqrt(2 / (d_model + d_model))


class SmallInit(Xavier):
    """Attention projections with std sqrt(2 / (d + 4d)), the rest as Xavier (Nguyen & Salazar 2019, section 2.2)."""

    def attention_std(self, d_model: int) -> float:
        """As if the projection were a feed-forward matrix of d_ff = 4 d."""
        return math.sqrt(2 / (d_model + 4 * d_model))


INITIALISERS: dict[str, type[Xavier]] = {"small": SmallInit, "xavier": Xavier}

FIXNORM_BOUND = 0.01  # rows are normalised at each use; small ones turn quickly (the paper's code)


@torch.no_grad()
def initialise(model: nn.Module, scheme: Xavier, seed: int) -> None:
    """Set every weight: matrices and tables at random, biases 0; norms keep what they were made with."""

    def stream(name: str) -> torch.Generator:
        return torch.Generator().manual_seed(derive(seed, "init", name))

    for path, module in model.named_modules():
        match module:
            case Attention() | FeedForward():
                for name, linear in module.named_children():
                    if isinstance(linear, nn.Linear):
                        std = scheme.std(module, linear)
                        linear.weight.normal_(0.0, std, generator=stream(f"{path}.{name}.weight"))
                        if linear.bias is not None:
                            linear.bias.zero_()
            case FixNormEmbedding():
                module.weight.uniform_(-FIXNORM_BOUND, FIXNORM_BOUND, generator=stream(f"{path}.weight"))
            case Embedding() | LearnedPositions():
                std = module.weight.size(1) ** -0.5
                module.weight.normal_(0.0, std, generator=stream(f"{path}.weight"))
