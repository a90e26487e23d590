import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ablab.transformer.model.feed_forward import FeedForward, SwiGLU
from ablab.transformer.training.cost import flops_per_token, parameter_count
from tests.model.arms import build
from tests.shipped import shipped

FEED_FORWARDS = shipped("feed_forward")

SIZES = [(16, 24), (128, 512), (256, 1024), (512, 2048), (2, 1), (64, 100)]


def made(kind: str, d_model: int, d_ff: int) -> FeedForward:
    return FEED_FORWARDS[kind](d_model, d_ff, nn.Identity())


@pytest.mark.parametrize(("d_model", "d_ff"), SIZES)
def test_swiglu_is_as_near_to_relus_parameters_as_a_whole_width_can_be(d_model, d_ff):
    wanted = parameter_count(made("relu", d_model, d_ff))
    found = made("swiglu", d_model, d_ff)
    width = found.inner.out_features
    assert parameter_count(found) == 3 * d_model * width + 2 * width + d_model

    def distance(width: int) -> int:
        return abs(3 * d_model * width + 2 * width + d_model - wanted)

    assert all(distance(width) <= distance(other) for other in (width - 1, width + 1) if other > 0)
    assert distance(width) <= (3 * d_model + 2) / 2
    assert width == SwiGLU.width(d_model, d_ff)


def test_gelu_has_relus_parameters():
    assert parameter_count(made("gelu", 16, 24)) == parameter_count(made("relu", 16, 24))


@pytest.mark.parametrize("kind", FEED_FORWARDS)
def test_kinds_are_their_formulas(kind):
    block = made(kind, 8, 12).double()
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    y = block.inner(x)
    hidden = {
        "relu": lambda: torch.maximum(y, torch.zeros_like(y)),
        "gelu": lambda: y * torch.special.ndtr(y),
        "gelu_tanh": lambda: y * torch.sigmoid(math.sqrt(8 / math.pi) * (y + 0.044715 * y**3)),
        "swiglu": lambda: block.gate(x) * torch.sigmoid(block.gate(x)) * y,
    }[kind]()
    assert_close(block(x), hidden @ block.outer.weight.T + block.outer.bias, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", FEED_FORWARDS)
def test_every_token_is_by_itself(kind):
    block = made(kind, 8, 12).double()
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    assert_close(block(x)[1, 2], block(x[1, 2]), rtol=0, atol=1e-12)


def test_operations_are_those_of_all_three_matrices():
    """As many as ReLU's but for the rounding of the width."""
    shares = {"encoder": [1.0] * 2, "decoder": [1.0] * 3}
    relu, swiglu = (flops_per_token(build(variant), 1.0, shares) for variant in ("pre", "swiglu"))
    matrices = 3 * 16 * SwiGLU.width(16, 24) - 2 * 16 * 24
    assert swiglu - relu == 6 * 5 * matrices
