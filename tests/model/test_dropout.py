"""Ordinary dropout: its rate, its expectation, and when it does nothing."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from ablab.transformer.model.attention import attend
from ablab.transformer.model.dropout import LEVELS, Dropout


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


def test_what_falls_is_decided_by_the_sites_own_stream():
    x, dropout = torch.ones(1001), Dropout(0.5)
    dropout.reseed(5)
    first, second = dropout(x), dropout(x)
    dropout.reseed(5)
    torch.manual_seed(7)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("dropout", [Dropout(0.0), Dropout(0.5).eval()], ids=["rate 0", "evaluation"])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_rate_0_and_evaluation_are_the_identity_and_draw_nothing(dropout, device):
    x = torch.ones(10, device=device)
    before = [torch.get_rng_state(), dropout.generator.get_state()]
    assert dropout(x) is x
    assert attend_to(x, dropout).shape == x.shape
    after = [torch.get_rng_state(), dropout.generator.get_state()]
    assert all(torch.equal(*states) for states in zip(before, after, strict=True))


def attend_to(x: Tensor, dropout: Dropout) -> Tensor:
    """Attention of one head over one sentence, x as queries, keys and values of width 1."""
    row = x[None, None, :, None]
    return attend(row, row, row, None, causal=False, dropout=dropout).flatten()


def dropped(x: Tensor, dropout: Dropout) -> Tensor:
    return dropout(x)


@pytest.mark.parametrize("draw", [dropped, attend_to])
def test_where_no_generator_is_taken_the_default_one_is_set_to_the_sites_stream(draw):
    """As on a GPU, of which the meta device has all but the values: what the default generator draws is looked at."""
    x, dropout = torch.ones(10, device="meta"), Dropout(0.5)

    def following(seed: int, calls: int) -> Tensor:
        """What the default generator draws after some calls."""
        torch.manual_seed(torch.seed())  # wherever it was
        dropout.reseed(seed)
        for _ in range(calls):
            draw(x, dropout)
        return torch.rand(5)

    assert torch.equal(following(1, calls=1), following(1, calls=1))
    assert not torch.equal(following(1, calls=1), following(2, calls=1))
    assert not torch.equal(following(1, calls=1), following(1, calls=2))


def test_elsewhere_than_on_the_cpu_the_fused_kernel_drops_weights_at_the_sites_rate(monkeypatch):
    rates = []
    fused = F.scaled_dot_product_attention
    monkeypatch.setattr(
        F,
        "scaled_dot_product_attention",
        lambda *given, dropout_p, **options: rates.append(dropout_p) or fused(*given, dropout_p=dropout_p, **options),
    )
    for dropout in (Dropout(0.3), Dropout(0.3).eval()):
        attend_to(torch.ones(10, device="meta"), dropout)
    assert rates == [0.3, 0.0]
