"""What a model costs to train, counted from its matrices, and what the machine could do meanwhile."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import nn

from ablab.model.embedding import TiedEmbeddings
from ablab.model.layers import DecoderLayer
from ablab.model.transformer import Transformer

LARGE = 1024
"""Rows and columns of the product that stands for the machine; four times as many on a GPU."""

SHARE = 1e-3
"""Of the training's seconds: what timing that product may cost, apart from the first time."""


def parameter_count(model: nn.Module) -> int:
    """All parameters, shared ones once."""
    return sum(parameter.numel() for parameter in model.parameters())


def flops_per_token(
    model: Transformer, src_tokens_per_tgt_token: float, shares: Mapping[str, Sequence[float]]
) -> float:
    """Floating-point operations of forward and backward for one target token and its share of the source.

    6 per matrix parameter and token (2 forward, 4 backward; Kaplan et al. 2020, section 2.1); attention's own
    products, norms and dropout are left out, as they are small at the lengths of sentences. `shares`: by stack, of the
    tokens those for which each layer ran; LayerDrop leaves it out for the others.
    """
    encoder = sum(
        share * _matrix_parameters(layer) for share, layer in zip(shares["encoder"], model.encoder.layers, strict=True)
    )
    decoder = memory = 0.0
    for share, layer in zip(shares["decoder"], model.decoder.layers, strict=True):
        # Keys and values of cross-attention are computed once per source token, not per target token.
        of_memory = cast(DecoderLayer, layer).cross_attention.key_value.weight.numel()
        memory += share * of_memory
        decoder += share * (_matrix_parameters(layer) - of_memory)
    return 6.0 * ((encoder + memory) * src_tokens_per_tgt_token + decoder + _output_parameters(model.words))


class ProductTimer:
    """Times one large matrix product now and then beside a training, under whatever load there is."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        self.device, self.dtype = device, dtype
        self._spent, self._longest = 0.0, 0.0

    def due(self, seconds: float) -> bool:
        """Whether once more costs no more than its share of a training of so many seconds; the first time always."""
        return self._spent + self._longest <= SHARE * seconds or not self._spent

    def speed(self) -> float:
        """Operations a second."""
        began = time.perf_counter()
        found = product_speed(self.device, self.dtype)
        spent = time.perf_counter() - began
        self._spent, self._longest = self._spent + spent, max(self._longest, spent)
        return found


def product_speed(device: torch.device, dtype: torch.dtype) -> float:
    """Floating-point operations a second of one large matrix product, the faster of two, with the threads at hand.

    What training would reach if it were nothing else.
    """
    size = LARGE if device.type == "cpu" else 4 * LARGE
    generator = torch.Generator(device).manual_seed(0)  # the default one is the training's
    # Not zeros, with which some devices are faster.
    left, right = (torch.rand(size, size, generator=generator, device=device).to(dtype) for _ in range(2))
    fastest = math.inf
    for _ in range(2):
        began = time.perf_counter()
        product = left @ right
        float(product[0, 0])  # a device answers when it is done
        fastest = min(fastest, time.perf_counter() - began)
    return 2 * size**3 / fastest


def _matrix_parameters(module: nn.Module) -> int:
    return sum(linear.weight.numel() for linear in module.modules() if isinstance(linear, nn.Linear))


def _output_parameters(words: TiedEmbeddings) -> int:
    return words.output_matrix().numel()
