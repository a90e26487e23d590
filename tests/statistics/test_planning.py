"""The seeds that a claim needs are the fewest that have the power, whatever it expects."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ablab.statistics.moderated import moderated_contrast
from ablab.statistics.paired import MINIMUM_SEEDS
from ablab.statistics.power import MOST_SEEDS, POWERS, Layout, sd_range, seeds_for, seen, two_sided_power
from ablab.statistics.student import upper_tail
from benchmarks.calibration.worlds import borrowing

SIGNS = {"equal": (1, -1), "not_worse": (-1,)}
PAIR = Layout((1.0, -1.0), None)
expectations = st.sampled_from(sorted(POWERS))


@given(expectations, st.floats(0.3, 3), st.sampled_from([None, 0, 1, 3, 9]), st.sampled_from([0.05, 0.01]))
def test_they_are_the_fewest(expect, margin, others, alpha):
    layout = Layout((1.0, -1.0), others)
    seeds = seeds_for(expect, margin, 1.0, layout, alpha)
    assert seeds is not None
    assert layout.power(expect, margin, 1.0, seeds, alpha) >= 0.8
    if seeds > MINIMUM_SEEDS:
        assert layout.power(expect, margin, 1.0, seeds - 1, alpha) < 0.8


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


STUDIES = 20_000
SLACK = 0.012
"""Four standard errors of a share of so many studies."""


def many(arms, seeds):
    return np.random.default_rng([arms, seeds]).normal(size=(STUDIES, arms, seeds))


@pytest.mark.parametrize("seeds", [3, 4, 10])
@pytest.mark.parametrize("others", [0, 1, 2, 6])
@pytest.mark.parametrize("level", [0.05, 0.001])
def test_what_is_found_with_a_power_is_found_by_the_test_so_often(others, seeds, level):
    """On both sides of the largest weight: three degrees of freedom, which half of those of the others reach."""
    studies = many(2 + others, seeds)
    studies[:, 1] += Layout((1.0, -1.0), others).detectable(1.0, seeds, level)
    assert np.mean(borrowing(studies)[:, 0] <= level) == pytest.approx(0.8, abs=SLACK)


@pytest.mark.parametrize("sizes", [(1.0, 5.0, 1.0, 1.0), (1.0, 1.0, 0.2, 0.2, 0.2), (0.1, 2.0, 1.0, 1.0)])
@pytest.mark.parametrize("difference", [1.0, -2.0, 8.0])
def test_the_power_is_that_of_the_test_where_arms_scatter_unlike_each_other(sizes, difference):
    """The first two are compared. Four arms of five seeds do not make one wild."""
    studies = many(len(sizes), 5) * np.array(sizes)[:, None]
    studies[:, 1] += difference
    variances, rest = np.square(sizes[:2]), float(np.mean(np.square(sizes[2:])))
    layout = Layout((-1.0, 1.0), len(sizes) - 2, tuple(variances), rest)
    planned = layout.power("greater", abs(difference), float(variances.mean() ** 0.5), 5)
    assert planned == pytest.approx(np.mean(borrowing(studies)[:, 0] <= 0.05), abs=SLACK)


@pytest.mark.parametrize(("expect", "margin"), [("equal", 2.4), ("not_worse", 1.6)])
def test_the_chance_of_support_where_nothing_differs_is_that_of_the_test(expect, margin):
    arms, level = many(5, 4)[:2000], 0.025
    found = [moderated_contrast([one[0], one[1]], [1.0, -1.0], list(one[2:])) for one in arms]
    p = [
        max(upper_tail((margin - sign * one.difference) / one.standard_error, one.df) for sign in SIGNS[expect])
        for one in found
    ]
    planned = Layout((1.0, -1.0), 3).power(expect, margin, 1.0, 4, level)
    assert 0.3 < planned < 0.9
    assert np.mean(np.array(p) <= level) == pytest.approx(planned, abs=0.04)


def test_an_interaction_of_arms_alike_is_planned_as_it_is_tested():
    arms = np.random.default_rng(6).normal(size=(2000, 4, 3))
    weights = (1.0, -1.0, -1.0, 1.0)
    seen = Layout(weights, 0).detectable(1.0, 3)
    arms[:, 0] += seen
    p = [moderated_contrast(list(one), weights).p for one in arms]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.8, abs=0.035)


@pytest.mark.parametrize("variances", [(), (1.0, 25.0)])
def test_the_deviation_of_a_run_is_that_of_its_standard_error(variances):
    layout = Layout((1.0, -1.0), 2, variances)
    assert layout.sd(layout.error(1.7, 6), 6) == pytest.approx(1.7)
    assert layout.error(1.0, 6) == pytest.approx((2 / 6) ** 0.5)


def test_a_claim_whose_arms_share_their_runs_is_planned_by_the_arms_that_were_tested():
    """As a mean over ways of pruning the same runs: of its four weights, two arms are left."""
    arm, baseline, other = many(3, 4)[0]
    found = moderated_contrast([arm, baseline], [1.0, -1.0], [other])
    planned = Layout.of([0.5, -0.5, 0.5, -0.5], found)
    assert planned == Layout.of([1.0, -1.0], found)
    assert seen([0.5, -0.5, 0.5, -0.5], found, found.standard_error, 4) > found.standard_error


@pytest.mark.parametrize(("others", "count"), [(1, 10), (2, 10), (1, 2), (3, 4)])
def test_what_is_seen_counts_the_seeds_of_the_lenders(others, count):
    """They may have more seeds than the compared arms, or fewer."""
    rng = np.random.default_rng([others, count])
    arms, lenders = rng.normal(size=(4000, 2, 3)), rng.normal(size=(4000, others, count))
    found = moderated_contrast(list(arms[0]), [1.0, -1.0], list(lenders[0]))
    true = replace(Layout.of([1.0, -1.0], found), variances=(), rest=1.0, spare=found.spare).detectable(1.0, 3)
    p = [
        moderated_contrast([one[0] + true, one[1]], [1.0, -1.0], list(lent)).p
        for one, lent in zip(arms, lenders, strict=True)
    ]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.8, abs=0.027)


def test_two_seeds_and_many_lenders_leave_a_half_of_a_degree_of_freedom():
    """Arms unlike the lenders would have none, and no interval."""
    rng = np.random.default_rng(4)
    others = [0.01 * rng.normal(size=2) for _ in range(8)]
    found = moderated_contrast([[1.0, 1.5], [0.0, 0.3]], [1.0, -1.0], others)
    assert 0.5 <= found.df <= 1
    assert np.isfinite([found.at(0.95).low, found.p, seen([1.0, -1.0], found, found.standard_error, 2)]).all()
    tied = moderated_contrast([[1.0, 1.0], [0.0, 0.5]], [1.0, -1.0], others)
    assert np.isfinite([tied.at(0.95).low, tied.p, seen([1.0, -1.0], tied, tied.standard_error, 2)]).all()


def test_the_range_of_a_standard_deviation_covers_it_as_often_as_it_says():
    rng = np.random.default_rng(4)
    ranges = [sd_range(float(rng.normal(0, 2, 5).std(ddof=1)), 4) for _ in range(2000)]
    assert np.mean([low <= 2 <= high for low, high in ranges]) == pytest.approx(0.8, abs=0.03)
    low, high = sd_range(1.0, 4, 0.95)
    assert stats.chi2.cdf(4 / low**2, 4) - stats.chi2.cdf(4 / high**2, 4) == pytest.approx(0.95)


def test_arms_to_borrow_from_save_seeds():
    alone, beside = (seeds_for("greater", 3.3, 1.0, Layout((1.0, -1.0), others)) for others in (0, 4))
    assert beside < alone


@pytest.mark.parametrize(("sizes", "margin"), [((5.0, 1.0), 12.0), ((5.0, 1.0), 8.0), ((3.0, 1.0, 1.0, 1.0), 6.0)])
def test_the_seeds_of_arms_that_scatter_unlike_each_other_have_the_power(sizes, margin):
    rng = np.random.default_rng(5)
    alike = np.array([-1.0, 0.0, 1.0])
    baseline, arm, *others = (size * rng.permutation(alike) for size in sizes)
    found = moderated_contrast([arm, baseline], [1.0, -1.0], others)
    layout = Layout.of([1.0, -1.0], found)
    seeds = seeds_for("greater", margin, layout.sd(found.standard_error, 3), layout)
    assert seeds is not None
    scores = rng.normal(size=(1000, len(sizes), seeds)) * np.array(sizes)[:, None]
    scores[:, 1] += margin
    p = [moderated_contrast([study[1], study[0]], [1.0, -1.0], list(study[2:])).p for study in scores]
    assert np.mean(np.array(p) <= 0.05) >= 0.77  # of 1,000 studies: within two standard errors
