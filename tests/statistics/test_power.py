"""What a study can see."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablab.statistics.paired import of_differences
from ablab.statistics.power import detectable_difference, one_sided_power, two_sided_power


@pytest.mark.parametrize(
    ("effect", "seeds", "power"),
    # G*Power 3.1, "difference between two dependent means", two tails, alpha 0.05.
    [(1.0, 10, 0.8031), (0.5, 34, 0.8078), (0.8, 15, 0.8213)],
)
def test_power_is_the_published_one(effect, seeds, power):
    assert two_sided_power(effect, 1.0 / seeds**0.5, seeds - 1) == pytest.approx(power, abs=2e-4)


def test_power_is_how_often_the_test_rejects():
    rng = np.random.default_rng(0)
    found = [of_differences(rng.normal(0.6, 0.5, 5)).p < 0.05 for _ in range(2000)]
    assert np.mean(found) == pytest.approx(two_sided_power(0.6, 0.5 / 5**0.5, 4), abs=0.04)


def test_one_sided_power_is_how_often_the_margin_is_excluded():
    rng = np.random.default_rng(1)
    found = [of_differences(rng.normal(0, 0.5, 5) + 0.6).at(0.9).low > 0 for _ in range(2000)]
    assert np.mean(found) == pytest.approx(one_sided_power(0.6, 0.5 / 5**0.5, 4), abs=0.04)
    assert one_sided_power(0.0, 1.0, 4) == pytest.approx(0.05)


def test_without_effect_power_is_the_level():
    assert two_sided_power(0.0, 1.0, 6, alpha=0.01) == pytest.approx(0.01)


@given(st.floats(1e-3, 50), st.integers(1, 39), st.floats(0.05, 3), st.sampled_from([0.05, 0.01, 0.001]))
def test_power_is_a_probability_that_grows_with_the_effect(effect, df, error, alpha):
    low, high = (two_sided_power(size * effect, error, df, alpha) for size in (1, 1.5))
    assert alpha - 1e-9 <= low <= high + 1e-9 <= 1 + 2e-9


@given(st.floats(0.1, 3), st.integers(2, 39), st.sampled_from([0.05, 0.01]))
def test_the_detectable_difference_is_found_with_the_power_it_promises(error, df, alpha):
    difference = detectable_difference(error, df, alpha=alpha)
    assert two_sided_power(difference, error, df, alpha) == pytest.approx(0.8, abs=1e-6)


def test_impossible_questions_are_refused():
    with pytest.raises(ValueError, match="sd must"):
        detectable_difference(0.0, 4)
    with pytest.raises(ValueError, match=r"got alpha=0\.8"):
        detectable_difference(1.0, 4, alpha=0.8)
