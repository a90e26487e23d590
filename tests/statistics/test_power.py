"""What a study can see."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablab.statistics.paired import of_differences
from ablab.statistics.power import detectable_effect, one_sided_power, paired_power


@pytest.mark.parametrize(
    ("effect", "seeds", "power"),
    # G*Power 3.1, "difference between two dependent means", two tails, alpha 0.05.
    [(1.0, 10, 0.8031), (0.5, 34, 0.8078), (0.8, 15, 0.8213)],
)
def test_power_is_the_published_one(effect, seeds, power):
    assert paired_power(effect, 1.0, seeds) == pytest.approx(power, abs=2e-4)


def test_power_is_how_often_the_test_rejects():
    rng = np.random.default_rng(0)
    found = [of_differences(rng.normal(0.6, 0.5, 5)).p < 0.05 for _ in range(2000)]
    assert np.mean(found) == pytest.approx(paired_power(0.6, 0.5, 5), abs=0.04)


def test_one_sided_power_is_how_often_the_margin_is_excluded():
    rng = np.random.default_rng(1)
    found = [of_differences(rng.normal(0, 0.5, 5) + 0.6, level=0.9).interval.low > 0 for _ in range(2000)]
    assert np.mean(found) == pytest.approx(one_sided_power(0.6, 0.5 / 5**0.5, 4), abs=0.04)
    assert one_sided_power(0.0, 1.0, 4) == pytest.approx(0.05)


def test_without_effect_power_is_the_level():
    assert paired_power(0.0, 1.0, 7, alpha=0.01) == pytest.approx(0.01)


@given(st.floats(1e-3, 50), st.integers(2, 40), st.floats(0.05, 3), st.sampled_from([0.05, 0.01, 0.001]))
def test_power_is_a_probability_that_grows_with_the_effect(effect, seeds, sd, alpha):
    low, high = paired_power(effect, sd, seeds, alpha), paired_power(1.5 * effect, sd, seeds, alpha)
    assert alpha - 1e-9 <= low <= high + 1e-9 <= 1 + 2e-9


@given(st.floats(0.1, 3), st.integers(3, 40), st.sampled_from([0.05, 0.01]))
def test_the_detectable_effect_is_found_with_the_power_it_promises(sd, seeds, alpha):
    effect = detectable_effect(sd, seeds, alpha=alpha)
    assert paired_power(effect, sd, seeds, alpha) == pytest.approx(0.8, abs=1e-6)


def test_impossible_questions_are_refused():
    with pytest.raises(ValueError, match="at least 2"):
        paired_power(1.0, 1.0, 1)
    with pytest.raises(ValueError, match="sd must"):
        detectable_effect(0.0, 5)
