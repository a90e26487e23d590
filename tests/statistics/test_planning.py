"""The seeds that a claim needs are the fewest that have the power, whatever it expects."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ablab.statistics.moderated import moderated_contrast
from ablab.statistics.paired import MINIMUM_SEEDS
from ablab.statistics.power import MOST_SEEDS, POWERS, Layout, sd_range, seeds_for, two_sided_power

PAIR = Layout([1.0, -1.0], None)
expectations = st.sampled_from(sorted(POWERS))


@given(expectations, st.floats(0.3, 3), st.sampled_from([None, 0, 1, 3, 9]), st.sampled_from([0.05, 0.01]))
def test_they_are_the_fewest(expect, margin, others, alpha):
    layout = Layout([1.0, -1.0], others)
    seeds = seeds_for(expect, margin, 1.0, layout, alpha)
    assert seeds is not None
    assert POWERS[expect](margin, *layout.precision(1.0, seeds), alpha) >= 0.8
    if seeds > MINIMUM_SEEDS:
        assert POWERS[expect](margin, *layout.precision(1.0, seeds - 1), alpha) < 0.8


def test_they_are_those_of_the_paired_test_of_independent_arms():
    # G*Power 3.1: 34 pairs find half a standard deviation of the differences with a power of 0.81.
    assert seeds_for("greater", 0.5, 1 / 2**0.5, PAIR) == 34
    assert two_sided_power(0.5, 34**-0.5, 33) >= 0.8 > two_sided_power(0.5, 33**-0.5, 32)


def test_there_are_never_fewer_than_may_be_tested_nor_more_than_anyone_trains():
    assert seeds_for("equal", 100.0, 1.0, PAIR) == MINIMUM_SEEDS
    assert seeds_for("greater", 1e-3, 1.0, PAIR) is None
    most = seeds_for("greater", 0.13, 1.0, PAIR)
    assert most is not None
    assert 900 < most <= MOST_SEEDS
    assert seeds_for("greater", 0.12, 1.0, PAIR) is None


@pytest.mark.parametrize(("margin", "sd"), [(0.0, 1.0), (1.0, 0.0)])
def test_no_margin_and_no_noise_have_no_answer(margin, sd):
    with pytest.raises(ValueError, match="above 0"):
        seeds_for("greater", margin, sd, PAIR)


@pytest.mark.parametrize("weights", [[1.0, -1.0], [1.0, -1.0, -1.0, 1.0], [0.5, -0.5, 0.5, -0.5]])
@pytest.mark.parametrize("others", [0, 4])
def test_the_precision_is_that_of_the_test_where_all_arms_scatter_alike(weights, others):
    scores = np.array([-1.0, 0.0, 1.0, 2.0, -2.0])
    arms = [np.random.default_rng(number).permutation(scores) for number in range(len(weights))]
    found = moderated_contrast(arms, weights, [scores] * others)
    layout = Layout(weights, others)
    error, df = layout.precision(float(scores.std(ddof=1)), 5)
    assert (error, df) == pytest.approx((found.standard_error, found.df))
    assert layout.sd(error, 5) == pytest.approx(scores.std(ddof=1))


@pytest.mark.parametrize(("others", "seeds"), [(1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 2), (2, 3), (2, 4)])
def test_few_arms_to_borrow_from_lend_in_a_plan_what_they_lend_in_the_test(others, seeds):
    """On both sides of the largest weight: two degrees of freedom, which half of those of the others reach."""
    scores = np.arange(seeds, dtype=float) ** 2
    arms = [scores, np.roll(scores, 1)]
    found = moderated_contrast(arms, [1.0, -1.0], [scores] * others)
    planned = Layout([1.0, -1.0], others).precision(float(scores.std(ddof=1)), seeds)
    assert planned == pytest.approx((found.standard_error, found.df))
    assert found.df == pytest.approx(2 * (seeds - 1 + min(2.0, others * (seeds - 1) / 2)))


def test_the_range_of_a_standard_deviation_covers_it_as_often_as_it_says():
    rng = np.random.default_rng(4)
    ranges = [sd_range(float(rng.normal(0, 2, 5).std(ddof=1)), 4) for _ in range(2000)]
    assert np.mean([low <= 2 <= high for low, high in ranges]) == pytest.approx(0.8, abs=0.03)
    low, high = sd_range(1.0, 4, 0.95)
    assert stats.chi2.cdf(4 / low**2, 4) - stats.chi2.cdf(4 / high**2, 4) == pytest.approx(0.95)


def test_arms_to_borrow_from_save_seeds():
    alone, beside = (seeds_for("greater", 3.0, 1.0, Layout([1.0, -1.0], others)) for others in (0, 4))
    assert beside < alone


@pytest.mark.parametrize("sizes", [(5.0, 1.0), (1.0, 0.1), (1.0, 20.0)])
@pytest.mark.parametrize("others", [0, 1, 4])
def test_the_precision_is_that_of_the_test_where_arms_scatter_unlike_each_other(sizes, others):
    scores = np.array([-1.0, 0.0, 1.0, 2.0, -2.0])
    arms = [size * np.roll(scores, number) for number, size in enumerate(sizes)]
    found = moderated_contrast(arms, [1.0, -1.0], [scores] * others)
    layout = planned_as(found)
    assert layout.precision(layout.sd(found.standard_error, 5), 5) == pytest.approx((found.standard_error, found.df))


def planned_as(found):
    shares = [degrees / found.weight for degrees in found.lent] if found.weight else ()
    return Layout([1.0, -1.0], found.lenders, found.variances, shares)


@pytest.mark.parametrize(("sizes", "margin"), [((5.0, 1.0), 12.0), ((5.0, 1.0), 8.0), ((3.0, 1.0, 1.0, 1.0), 6.0)])
def test_the_seeds_of_arms_that_scatter_unlike_each_other_have_the_power(sizes, margin):
    """As if all arms scattered alike, they had 62 % of it, and 76 % with 8."""
    rng = np.random.default_rng(5)
    alike = np.array([-1.0, 0.0, 1.0])
    baseline, arm, *others = (size * rng.permutation(alike) for size in sizes)
    found = moderated_contrast([arm, baseline], [1.0, -1.0], others)
    layout = planned_as(found)
    seeds = seeds_for("greater", margin, layout.sd(found.standard_error, 3), layout)
    assert seeds is not None
    scores = rng.normal(size=(1000, len(sizes), seeds)) * np.array(sizes)[:, None]
    scores[:, 1] += margin
    p = [moderated_contrast([study[1], study[0]], [1.0, -1.0], list(study[2:])).p for study in scores]
    assert np.mean(np.array(p) <= 0.05) >= 0.77  # of 1,000 studies: within two standard errors
