"""What training costs, and what the machine could do."""

from itertools import accumulate, chain, repeat

import pytest
import torch

from ablab.training import cost


def test_the_limit_is_the_fastest_of_some_products(monkeypatch):
    """By a clock on which products take 30, 10 and 20 ms."""
    ticks = accumulate(chain([0.0, 0.0, 0.0, 0.030, 0.0, 0.0, 0.010, 0.0, 0.0, 0.020], repeat(1.0)))
    monkeypatch.setattr(cost.time, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(cost, "LARGE", 16)
    assert cost.matmul_limit(torch.device("cpu"), torch.float32) == pytest.approx(2 * 16**3 / 0.010)
