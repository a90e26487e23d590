"""Tuning curves and their bands: exact, whatever the distribution of the costs."""

from itertools import combinations
from math import inf

import numpy as np
import pytest

from ablab.statistics.tuning_curve import MOST, bands, best_of, expected_best, together


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_the_chance_of_one_bound_is_that_of_the_least_or_largest(n):
    free, one = np.zeros(n), np.ones(n)
    assert together(free, one) == pytest.approx(1.0)
    least = np.full(n, 0.1)
    assert together(least, one) == pytest.approx(0.9**n)
    assert together(free, np.full(n, 0.7)) == pytest.approx(0.7**n)


def test_the_chance_of_crossed_bounds_is_that_of_simulated_numbers():
    low, high = np.array([0.05, 0.2, 0.3, 0.5]), np.array([0.4, 0.6, 0.9, 0.95])
    drawn = np.sort(np.random.default_rng(1).random((400_000, 4)), axis=1)
    simulated = ((drawn >= low) & (drawn <= high)).all(axis=1).mean()
    assert together(low, high) == pytest.approx(simulated, abs=0.003)


@pytest.mark.parametrize("n", [2, 8, 30])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_bands_hold_together_with_the_chance_that_was_asked(n, level):
    low, high = bands(n, level)
    assert together(low, high) == pytest.approx(level, abs=1e-6)
    assert (np.diff(low) > 0).all()
    assert (np.diff(high) > 0).all()
    assert low == pytest.approx(1.0 - high[::-1])


def test_the_band_holds_the_whole_curve_with_at_least_the_chance_that_was_asked():
    rng, n, held = np.random.default_rng(1), 16, 0
    for _ in range(2_000):
        curve = best_of(rng.exponential(size=n), level=0.8)
        truth = [-np.log(2.0 ** (-1.0 / point.k)) for point in curve]  # the median of the least of k exponential costs
        held += all(point.low <= true <= point.high for point, true in zip(curve, truth, strict=True))
    assert held / 2_000 >= 0.8 - 0.02
    assert held / 2_000 < 0.99


def test_the_curve_ends_where_its_band_has_no_end():
    costs = list(range(12))
    curve = best_of(costs)
    assert [point.k for point in curve] == list(range(1, len(curve) + 1))
    assert 1 <= len(curve) < len(costs)
    assert all(point.low <= point.estimate <= point.high for point in curve)
    assert [point.estimate for point in curve] == sorted((point.estimate for point in curve), reverse=True)
    assert best_of([1.0, 2.0]) == []
    assert best_of([float("inf")] * 12) == []


@pytest.mark.parametrize(("n", "middle"), [(11, 6), (12, 6), (13, 7), (14, 7)])
def test_the_estimate_is_the_least_cost_that_a_large_enough_share_of_the_draws_does_not_exceed(n, middle):
    """For k = 1 that is the lower median, exactly half of an even number of draws; for any k, no cost beyond it."""
    costs = list(range(1, n + 1))
    curve = best_of(costs)
    assert curve[0].estimate == middle
    for point in curve:
        share = 1 - 2 ** (-1 / point.k)
        assert (point.estimate - 1) / n < share <= point.estimate / n


@pytest.mark.parametrize("n", [0, 1, MOST + 1])
def test_other_numbers_of_draws_are_refused(n):
    with pytest.raises(ValueError, match=f"takes 2 to {MOST} draws, got {n}"):
        best_of([1.0] * n)


@pytest.mark.parametrize("diverged", [0, 2])
def test_the_expected_best_is_the_mean_over_all_choices(diverged):
    """Of trials that diverged too: an arm that often does is not easy to tune."""
    costs = sorted(np.random.default_rng(0).random(6).tolist())
    found = expected_best(costs, of=6 + diverged)
    assert len(found) == 6
    for k, mean in enumerate(found, diverged + 1):
        chosen = combinations([*costs, *[inf] * diverged], k)
        assert mean == pytest.approx(np.mean([min(one) for one in chosen]))
