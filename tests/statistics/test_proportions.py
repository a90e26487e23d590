"""Shares of diverged runs."""

import numpy as np
import pytest
from scipy import stats

from ablab.statistics.diverged import compare_shares, share_interval


def test_interval_of_none_in_three_by_hand():
    """Clopper-Pearson with no failure: 1 - (alpha / 2)^(1 / n)."""
    none = share_interval(0, 3)
    assert none.low == 0.0
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 3))


@pytest.mark.parametrize("runs", [3, 5, 10])
def test_interval_covers_whatever_the_true_share(runs):
    intervals = [share_interval(k, runs) for k in range(runs + 1)]
    for truth in np.linspace(0.001, 0.999, 200):
        chances = stats.binom.pmf(np.arange(runs + 1), runs, truth)
        assert sum(p for p, i in zip(chances, intervals, strict=True) if not i.excludes(truth)) >= 0.95


@pytest.mark.parametrize("runs", [3, 5])
def test_test_rejects_a_true_null_at_most_five_percent(runs):
    rejects = np.array(
        [[compare_shares((a, runs), (b, runs)).p <= 0.05 for b in range(runs + 1)] for a in range(runs + 1)]
    )
    assert rejects[runs, 0]
    for truth in np.linspace(0.01, 0.99, 99):
        chances = stats.binom.pmf(np.arange(runs + 1), runs, truth)
        assert chances @ rejects @ chances <= 0.05 + 1e-12


def test_swapping_the_arms_negates():
    one, other = compare_shares((1, 5), (4, 5)), compare_shares((4, 5), (1, 5))
    assert (one.difference, one.p) == pytest.approx((-other.difference, other.p))


def test_never_weaker_than_fisher():
    for a, b in ((0, 3), (1, 5), (0, 4)):
        fisher = stats.fisher_exact([[a, b], [5 - a, 5 - b]]).pvalue
        assert compare_shares((a, 5), (b, 5)).p <= fisher + 1e-12


@pytest.mark.parametrize("failed", [-1, 4])
def test_shares_are_of_the_runs(failed):
    with pytest.raises(ValueError, match="failed <= runs"):
        share_interval(failed, 3)
