"""What a model costs to train, counted from its matrices."""

import math
import time

import torch
from torch import nn

from ablab.model.attention import CrossAttention
from ablab.model.embedding import WordTables
from ablab.model.transformer import Transformer

LARGE, SECONDS = 1024, 0.05
"""Rows and columns of the product that stands for the machine (four times as many on a GPU), and how long to try."""


def parameter_count(model: nn.Module) -> int:
    """All parameters, shared ones once."""
    return sum(parameter.numel() for parameter in model.parameters())


def flops_per_token(model: Transformer, src_tokens_per_tgt_token: float) -> float:
    """Floating-point operations of forward and backward for one target token and its share of the source.

    6 per matrix parameter and token (2 forward, 4 backward; Kaplan et al. 2020, section 2.1); attention's own
    products, norms and dropout are left out, as they are small at the lengths of sentences.
    """
    encoder, decoder = (_matrix_parameters(stack) for stack in (model.encoder, model.decoder))
    # Keys and values of cross-attention are computed once per source token, not per target token.
    memory = sum(
        module.key_value.weight.numel() for module in model.decoder.modules() if isinstance(module, CrossAttention)
    )
    output = _output_parameters(model.words)
    return 6.0 * ((encoder + memory) * src_tokens_per_tgt_token + decoder - memory + output)


def matmul_limit(device: torch.device, dtype: torch.dtype) -> float:
    """Floating-point operations a second of one large matrix product: the fastest of some, with the threads at hand.

    What training would reach if it were nothing else, and nobody else were there. Takes a twentieth of a second.
    """
    size = LARGE if device.type == "cpu" else 4 * LARGE
    left, right = (torch.zeros(size, size, device=device, dtype=dtype) for _ in range(2))
    fastest, end = math.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        began = time.perf_counter()
        product = left @ right
        float(product[0, 0])  # a device answers when it is done
        fastest = min(fastest, time.perf_counter() - began)
    return 2 * size**3 / fastest


def _matrix_parameters(module: nn.Module) -> int:
    return sum(linear.weight.numel() for linear in module.modules() if isinstance(linear, nn.Linear))


def _output_parameters(words: WordTables) -> int:
    return words.output_matrix().numel()
