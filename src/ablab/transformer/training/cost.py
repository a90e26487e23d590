"""Training cost of a model, counted from its matrices, and the speed of the machine for comparison."""

import math
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import cast

import torch
from torch import nn

from ablab.store.metrics import read_metrics
from ablab.store.records import Cost
from ablab.transformer.model.layers import DecoderLayer
from ablab.transformer.model.products import product
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.training.state import TrainingState

LARGE = 1024
"""Rows and columns of the matrix product that measures the machine; four times as many on a GPU."""

SHARE = 1e-3
"""Share of the training time that timing this product may take, apart from the first time."""


def parameter_count(model: nn.Module) -> int:
    """Return the number of parameters, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def flops_per_token(
    model: Transformer, src_tokens_per_tgt_token: float, shares: Mapping[str, Sequence[float]]
) -> float:
    """Return the floating-point operations of forward and backward for one target token and its share of the source.

    Counts 6 per matrix parameter and token (2 forward, 4 backward; Kaplan et al. 2020, section 2.1). Attention's own
    products, norms and dropout are left out, as they are small at sentence lengths. `shares`: by stack, the share of
    tokens for which each layer ran; LayerDrop dropped it for the others.
    """
    encoder = sum(
        share * matrix_parameters(layer) for share, layer in zip(shares["encoder"], model.encoder.layers, strict=True)
    )
    decoder = memory = 0.0
    for share, layer in zip(shares["decoder"], model.decoder.layers, strict=True):
        # Keys and values of cross-attention are computed once per source token, not per target token.
        of_memory = cast(DecoderLayer, layer).cross_attention.key_value.weight.numel()
        memory += share * of_memory
        decoder += share * (matrix_parameters(layer) - of_memory)
    return 6.0 * ((encoder + memory) * src_tokens_per_tgt_token + decoder + model.words.output_matrix().numel())


class ProductTimer:
    """Times one large matrix product at intervals during training, under the present load of the machine."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        self.device, self.dtype = device, dtype
        self._spent, self._longest = 0.0, 0.0

    def due(self, seconds: float) -> bool:
        """Return whether one more timing stays within `SHARE` of `seconds` of training; always True the first time."""
        return self._spent + self._longest <= SHARE * seconds or not self._spent

    def speed(self) -> float:
        """Time the product and return its floating-point operations per second."""
        began = time.perf_counter()
        found = product_speed(self.device, self.dtype)
        spent = time.perf_counter() - began
        self._spent, self._longest = self._spent + spent, max(self._longest, spent)
        return found


def product_speed(device: torch.device, dtype: torch.dtype) -> float:
    """Return floating-point operations per second of one large matrix product: the faster of two, on all threads set.

    This is the speed of a training that consisted of such products alone.
    """
    size = LARGE if device.type == "cpu" else 4 * LARGE
    generator = torch.Generator(device).manual_seed(0)  # training uses the default generator
    # Random numbers, as some devices multiply zeros faster.
    left, right = (torch.rand(size, size, generator=generator, device=device).to(dtype) for _ in range(2))
    fastest = math.inf
    for _ in range(2):
        began = time.perf_counter()
        found = product(left, right)
        float(found[0, 0])  # waits until the device is done
        fastest = min(fastest, time.perf_counter() - began)
    return 2 * size**3 / fastest


def matrix_parameters(module: nn.Module) -> int:
    """Return the number of parameters of linear maps, biases left out."""
    return sum(linear.weight.numel() for linear in module.modules() if isinstance(linear, nn.Linear))


def cost_of(
    state: TrainingState, tokens_of_epoch: int, flops_per_token: float, model: nn.Module, metrics: Path
) -> Cost:
    """Return the cost of a training that has ended; `metrics`: its metrics.csv."""
    return Cost(
        steps=state.step,
        epochs=state.tokens / tokens_of_epoch,
        tokens=state.tokens,
        seconds=state.seconds,
        train_seconds=state.train_seconds,
        tokens_per_second=_speed(state, metrics),
        peak_memory_bytes=max(state.peak_memory, peak_memory()),
        parameters=parameter_count(model),
        flops_per_token=flops_per_token,
        matmul_flops=median(state.product_speeds) if state.product_speeds else None,
    )


def _speed(state: TrainingState, metrics: Path) -> float:
    """Return the median of measured target tokens per second: pauses and other processes must not affect the figure."""
    rows = read_metrics(metrics)
    looks = [row["tokens_per_second"] for row in rows if "tokens_per_second" in row]
    if not looks:  # it diverged before the first measurement
        return state.tokens / max(state.train_seconds, 1e-9)
    return median(looks)


def peak_memory() -> int:
    """Return peak memory in bytes, of the device if there is one, otherwise of this process."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_allocated())
    # Linux counts in KiB, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
