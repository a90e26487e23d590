"""Boundaries hold the error over all looks, and undo each other's directions."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import stdtr

from ablab.statistics.looks import LATEST_FIRST, MOST, Looks

ALPHAS = (0.0005, 0.004, 0.0125, 0.025, 0.1)


def smallest(looks, paths, seed=0):
    """The smallest weighted one-sided p of each path without a difference."""
    drawn = np.random.default_rng(seed).standard_normal((paths, looks.last))
    n = np.arange(looks.first, looks.last + 1)
    t = np.stack([drawn[:, :k].mean(axis=1) * k**0.5 / drawn[:, :k].std(axis=1, ddof=1) for k in n], axis=1)
    return stdtr(n - 1, -t), n


@pytest.mark.parametrize(("first", "last"), [(3, 4), (3, 12), (5, 10), (10, 40)])
def test_a_true_null_is_rejected_at_some_look_as_often_as_wanted(first, last):
    looks, paths = Looks(first, last), 40_000
    p, n = smallest(looks, paths)
    for alpha in (0.0125, 0.025, 0.1):
        levels = np.array([looks.level(alpha, k) for k in n])
        rate = (p <= levels).any(axis=1).mean()
        assert abs(rate - alpha) <= 4 * (alpha * (1 - alpha) / paths) ** 0.5
        assert ((p <= alpha).any(axis=1).mean()) > 1.2 * alpha  # looking without boundaries


@pytest.mark.parametrize("looks", [Looks(3, 4), Looks(3, 12), Looks(LATEST_FIRST, MOST)])
def test_levels_rise_with_the_seeds_and_with_the_error_and_never_reach_it(looks):
    for alpha in ALPHAS:
        levels = [looks.level(alpha, n) for n in range(looks.first, looks.last + 1)]
        assert levels == sorted(levels)
        assert levels[-1] < alpha
    for n in (looks.first, looks.last):
        found = [looks.level(alpha, n) for alpha in ALPHAS]
        assert found == sorted(found)


def test_more_looks_cost_more():
    for alpha in ALPHAS:
        last = [Looks(3, last).level(alpha, last) for last in range(4, MOST + 1)]
        # To the precision of the simulation.
        assert all(later <= 1.02 * earlier for earlier, later in pairwise(last))


@pytest.mark.parametrize("looks", [Looks(3, 6), Looks(4, 40)])
def test_the_adjusted_error_undoes_the_level(looks):
    for alpha in ALPHAS:
        for n in (looks.first, looks.last):
            assert looks.adjusted(looks.level(alpha, n), n) == pytest.approx(alpha)


def test_outside_the_table_errors_go_on_in_order():
    looks = Looks(3, 12)
    found = [looks.adjusted(p, 12) for p in (0.0, 1e-9, 1e-6, 1e-4, 0.01, 0.3, 1.0)]
    assert found == sorted(found)
    assert found[0] < 1e-12
    assert found[-1] == 1.0


@pytest.mark.parametrize(("first", "last"), [(2, 10), (3, 3), (11, 12), (3, 41)])
def test_looks_that_the_table_lacks_are_refused(first, last):
    with pytest.raises(ValueError, match="looks are from 3 to 10 seeds on"):
        Looks(first, last)


def test_errors_and_seeds_that_the_table_lacks_are_refused():
    with pytest.raises(ValueError, match=r"alpha must be from 0\.0005 to 0\.1"):
        Looks(3, 12).level(0.0001, 5)
    with pytest.raises(ValueError, match="got 13"):
        Looks(3, 12).level(0.025, 13)


@pytest.mark.parametrize("looks", [Looks(3, 4), Looks(3, 12), Looks(LATEST_FIRST, MOST)])
def test_beyond_the_table_levels_go_on_in_proportion(looks):
    """Without a step at either of its ends."""
    alphas, thresholds = looks._logs
    for end, n in ((0, looks.first), (-1, looks.last)):
        p = float(np.exp(thresholds[end])) * n / looks.last
        inside, outside = (p * (1 + way * 1e-9 * (1 if end == 0 else -1)) for way in (1, -1))
        assert looks.adjusted(outside, n) == pytest.approx(looks.adjusted(inside, n), rel=1e-6)
        assert looks.adjusted(p, n) == pytest.approx(min(1.0, float(np.exp(alphas[end]))))
    least = float(np.exp(thresholds[0])) * looks.first / looks.last
    assert looks.adjusted(least / 10, looks.first) == pytest.approx(looks.adjusted(least, looks.first) / 10)
