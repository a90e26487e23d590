"""Ordinary dropout: its rate, its expectation, and when it does nothing."""

import pytest
import torch
from torch.testing import assert_close

from ablab.model.dropout import LEVELS, Dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_elements_are_dropped_at_the_rate_and_the_rest_scaled(p):
    x = torch.ones(200_001)
    y = Dropout(p)(x)
    dropped = (y == 0).double().mean()
    error = (p * (1 - p) / len(x)) ** 0.5
    assert abs(dropped - p) < 4 * error + 1 / LEVELS
    kept = y[y != 0]
    assert_close(kept, torch.full_like(kept, 1 / (1 - p)), rtol=1e-3 * p, atol=0)
    # The scale belongs to the rate that was really drawn with.
    assert float(kept[0]) == pytest.approx(LEVELS / (LEVELS - round(p * LEVELS)), rel=1e-6)


def test_each_of_the_four_draws_of_a_number_is_as_likely_to_drop():
    y = Dropout(0.3)(torch.ones(400_000)).view(-1, 4)
    assert_close((y == 0).double().mean(0), torch.full((4,), 0.3, dtype=torch.float64), rtol=0, atol=0.006)
    joint = ((y[:, 0] == 0) & (y[:, 1] == 0)).double().mean()
    assert float(joint) == pytest.approx(0.09, abs=0.004)


def test_the_gradient_falls_where_the_value_fell():
    x = torch.randn(50, 7, dtype=torch.float64, requires_grad=True)
    y = Dropout(0.4)(x)
    y.sum().backward()
    assert_close(x.grad * x.detach(), y.detach())


def test_draws_come_from_the_default_generator():
    x, dropout = torch.ones(1001), Dropout(0.5)
    torch.manual_seed(5)
    first = dropout(x)
    second = dropout(x)
    torch.manual_seed(5)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


def test_rate_0_and_evaluation_are_the_identity_and_draw_nothing():
    x = torch.randn(10)
    before = torch.get_rng_state()
    assert Dropout(0.0)(x) is x
    assert Dropout(0.5).eval()(x) is x
    assert torch.equal(torch.get_rng_state(), before)
