"""One-way analysis of variance, against scipy and against what it estimates."""

import numpy as np
import pytest
from scipy import stats

from ablab.statistics.anova import one_way
from ablab.statistics.interval import NotTestable


def groups(sizes=(3, 5, 4), between=1.0, within=1.0, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(rng.normal(20, between), within, size) for size in sizes]


@pytest.mark.parametrize("sizes", [(2, 2), (3, 5, 4), (5, 5, 5, 5)])
def test_f_is_scipys(sizes):
    values = groups(sizes)
    assert one_way(values).f == pytest.approx(stats.f_oneway(*values).statistic)


def test_it_estimates_the_variances_of_balanced_and_unbalanced_groups():
    for sizes in ((4,) * 6, (2, 3, 4, 5, 6, 7)):
        found = [one_way(groups(sizes, between=2.0, within=0.5, seed=seed)) for seed in range(400)]
        assert np.mean([each.between**2 for each in found]) == pytest.approx(4.0, rel=0.1)
        assert np.mean([each.within**2 for each in found]) == pytest.approx(0.25, rel=0.1)


def test_unequal_groups_by_hand():
    """Sizes 2, 3 and 4: n0 = (9 - 29 / 9) / 2 = 2.89, where the mean size would be 3."""
    found = one_way([[0.0, 2.0], [10.0, 11.0, 12.0], [20.0, 22.0, 24.0, 26.0]])
    within, grand = (2 + 2 + 20) / 6, 127 / 9
    assert found.within == pytest.approx(within**0.5)
    between = (2 * (1 - grand) ** 2 + 3 * (11 - grand) ** 2 + 4 * (23 - grand) ** 2) / 2
    assert found.f == pytest.approx(between / within)
    assert found.between == pytest.approx(((between - within) / (26 / 9)) ** 0.5)


def test_omega_squared_is_zero_on_average_where_nothing_differs():
    found = [one_way(groups(between=0.0, seed=seed)).omega_squared for seed in range(2000)]
    assert np.mean(found) == pytest.approx(0.0, abs=0.02)


def test_omega_squared_and_signal_to_noise_follow_from_f():
    """With k groups of n values: omega^2 = (k - 1) (F - 1) / ((k - 1) (F - 1) + k n), as textbooks have it."""
    found = one_way(groups((4, 4, 4), between=2.0))
    gain = 2 * (found.f - 1)
    assert found.omega_squared == pytest.approx(gain / (gain + 12))
    assert found.signal_to_noise == pytest.approx(((found.f - 1) / 4) ** 0.5)


def test_unit_and_origin_do_not_matter():
    one, other = one_way(groups()), one_way([-100 * values + 7 for values in groups()])
    assert (other.f, other.omega_squared, other.signal_to_noise) == pytest.approx(
        (one.f, one.omega_squared, one.signal_to_noise)
    )


def test_groups_closer_than_noise_would_put_them_have_no_signal():
    found = one_way([[1.0, 3.0], [2.0, 2.1]])
    assert (found.between, found.signal_to_noise) == (0.0, 0.0)
    assert found.f < 1
    assert found.omega_squared < 0


@pytest.mark.parametrize("values", [[[1.0, 2.0]], [[1.0, 2.0], [3.0]], []])
def test_too_few_values_are_an_error(values):
    with pytest.raises(ValueError, match="at least two groups of at least two values"):
        one_way(values)


def test_values_without_noise_have_no_ratio():
    with pytest.raises(NotTestable):
        one_way([[1.0, 1.0], [2.0, 2.0]])
    rounded = [0.1 + 0.2, 0.3, 0.3]  # which differ in the last bit
    with pytest.raises(NotTestable):
        one_way([rounded, [2.0, 2.0]])
