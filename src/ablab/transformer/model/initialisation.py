"""Initial weights, kept apart from the architecture because they are a hidden confounder of norm placement.

Every parameter draws from a random stream derived from its name, so that arms under one seed start from equal weights
wherever they share parameters.
"""

import math
from typing import ClassVar

import torch
from torch import nn

from ablab.seeding import derive
from ablab.transformer.model.attention import Attention
from ablab.transformer.model.embedding import Embedding, FixNormEmbedding
from ablab.transformer.model.feed_forward import FeedForward
from ablab.transformer.model.place import Place
from ablab.transformer.model.positions import LearnedPositions


class Xavier:
    """Normal initialisation with std sqrt(2 / (in + out)) for every matrix (Glorot & Bengio 2010, eq. 12).

    A joined matrix counts as the square matrices in it, so that joining does not change the initial weights.
    """

    def std(self, module: Attention | FeedForward, linear: nn.Linear) -> float:
        """Return the std of one matrix of an attention or feed-forward module."""
        return self.attention_std(linear.in_features) if isinstance(module, Attention) else self.linear_std(linear)

    def linear_std(self, linear: nn.Linear) -> float:
        """Return the std of any other matrix."""
        return math.sqrt(2 / (linear.in_features + linear.out_features))

    def attention_std(self, d_model: int) -> float:
        """Return the std of the query, key, value and output projections."""
        return math.sqrt(2 / (d_model + d_model))

    def gains(self, place: Place, module: Attention | FeedForward, name: str) -> tuple[float, ...]:
        """Return a further factor for each of the matrices joined in the linear `name` of a module."""
        return (1.0,)


class SmallInit(Xavier):
    """Xavier, but with std sqrt(2 / (d + 4d)) for attention projections (Nguyen & Salazar 2019, section 2.2)."""

    def attention_std(self, d_model: int) -> float:
        """Return the std that a feed-forward matrix with d_ff = 4 d would have."""
        return math.sqrt(2 / (d_model + 4 * d_model))


class DeepNormInit(Xavier):
    """Xavier with gain beta < 1 for feed-forward, value and output matrices (Wang et al. 2022, figure 2).

    With N encoder and M decoder layers beta is 0.87 (N^4 M)^(-1/16) in the encoder and (12 M)^(-1/4) in the decoder,
    (8 M)^(-1/4) in one without an encoder; queries and keys have gain 1. It belongs to residual.DeepNorm.
    """

    SCALED: ClassVar = {"qkv": (False, False, True), "query": (False,), "key_value": (False, True), "output": (True,)}

    def __init__(self, *, encoder_layers: int, decoder_layers: int) -> None:
        self.betas = {"decoder": ((12 if encoder_layers else 8) * decoder_layers) ** (-1 / 4)}
        if encoder_layers:
            self.betas["encoder"] = 0.87 * (encoder_layers**4 * decoder_layers) ** (-1 / 16)

    def gains(self, place: Place, module: Attention | FeedForward, name: str) -> tuple[float, ...]:
        """Return beta for matrices on the way of the values, 1 for those of queries and keys."""
        scaled = self.SCALED[name] if isinstance(module, Attention) else (True,)
        return tuple(self.betas[place.stack] if each else 1.0 for each in scaled)


GPT_STD = 0.02
"""Of every matrix, whatever its size: as in GPT (Radford et al. 2018, section 4.1)."""


class GPT2Init(Xavier):
    """Normal with std 0.02; what ends a residual branch is divided by sqrt(N) (Radford et al. 2019, section 2.3).

    N is the number of residual branches of the stack: 2 a layer, and 3 in a decoder with cross-attention. Tables of
    words and positions are as in the other schemes, with std d^(-1/2).
    """

    def __init__(self, *, encoder_layers: int, decoder_layers: int) -> None:
        self.branches = {"encoder": 2 * encoder_layers, "decoder": (3 if encoder_layers else 2) * decoder_layers}

    def linear_std(self, linear: nn.Linear) -> float:
        """Return 0.02."""
        return GPT_STD

    def attention_std(self, d_model: int) -> float:
        """Return 0.02."""
        return GPT_STD

    def gains(self, place: Place, module: Attention | FeedForward, name: str) -> tuple[float, ...]:
        """Return 1 / sqrt(N) for the last matrix of a branch, 1 for the others."""
        ends = name == ("output" if isinstance(module, Attention) else "outer")
        return (1 / math.sqrt(self.branches[place.stack]) if ends else 1.0,)


FIXNORM_BOUND = 0.01
"""Bound of the initial rows of a FixNorm table (the paper's code): normalised at each use, small rows turn quickly."""


@torch.no_grad()
def initialise(model: nn.Module, scheme: Xavier, seed: int) -> None:
    """Set all weights: random matrices and tables, zero biases; other parameters keep what their constructors gave."""

    def stream(name: str) -> torch.Generator:
        return torch.Generator().manual_seed(derive(seed, "init", name))

    for path, module in model.named_modules():
        match module:
            case Attention() | FeedForward():
                for name, linear in module.named_children():
                    if isinstance(linear, nn.Linear):
                        std = scheme.std(module, linear)
                        linear.weight.normal_(0.0, std, generator=stream(f"{path}.{name}.weight"))
                        gains = scheme.gains(_place(path), module, name)
                        for matrix, gain in zip(linear.weight.chunk(len(gains)), gains, strict=True):
                            matrix.mul_(gain)
            case nn.Linear() if not isinstance(model.get_submodule(path.rpartition(".")[0]), (Attention, FeedForward)):
                module.weight.normal_(0.0, scheme.linear_std(module), generator=stream(f"{path}.weight"))
            case FixNormEmbedding(initial="uniform"):
                module.weight.uniform_(-FIXNORM_BOUND, FIXNORM_BOUND, generator=stream(f"{path}.weight"))
            case Embedding() | LearnedPositions():
                std = module.weight.size(1) ** -0.5
                module.weight.normal_(0.0, std, generator=stream(f"{path}.weight"))
        if isinstance(module, nn.Linear) and module.bias is not None:
            module.bias.zero_()


def _place(path: str) -> Place:
    """Return the place of a sublayer, given its name in the model, such as `encoder.layers.0.self_attention`."""
    stack, _, layer, sublayer = path.split(".")[:4]
    return Place(stack, int(layer) + 1, sublayer)
