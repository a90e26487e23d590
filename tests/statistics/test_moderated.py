"""The moderated t test borrows from other arms, and never claims less noise than the two arms show themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ablab.statistics.interval import NotTestable
from ablab.statistics.moderated import TAKEN, borrowed, moderated, moderated_contrast
from ablab.statistics.paired import of_differences

RNG = np.random.default_rng(3)
ARM, BASELINE = RNG.normal(31, 0.5, 5), RNG.normal(30, 0.7, 5)
OTHERS = list(RNG.normal(30, 0.4, (3, 5)))

scores = st.lists(st.floats(-50, 50).map(lambda value: round(value, 3)), min_size=3, max_size=3)


def test_alone_it_is_welchs_test():
    found, scipys = moderated(ARM, BASELINE), stats.ttest_ind(ARM, BASELINE, equal_var=False)
    assert (found.p, found.df) == pytest.approx((scipys.pvalue, scipys.df), rel=1e-10)
    expected = scipys.confidence_interval(0.9)
    assert (found.at(0.9).low, found.at(0.9).high) == pytest.approx((expected.low, expected.high), rel=1e-10)
    assert found.method == f"Welch's t, {found.df:.1f} degrees of freedom"
    assert moderated(ARM, BASELINE, OTHERS[:1]).method.startswith("moderated t, ")


def test_five_arms_of_three_seeds_by_hand():
    # Variances 1, 1, and 4, 4, 4 of the others, whose mean has the weight 3 beside 2.
    arm, baseline = [1.0, 2.0, 3.0], [-1.0, 1.0, 0.0]
    found = moderated(arm, baseline, [[0.0, 2.0, 4.0]] * 3)
    assert found.difference == 2.0
    assert found.standard_error == pytest.approx((2 * (2 * 1 + 3 * 4) / 5 / 3) ** 0.5)
    assert found.df == pytest.approx(10)  # 2 (2 + 3), for equal variances


def test_few_arms_lend_little():
    # One other arm has two degrees of freedom: the prior has one.
    found = moderated([1.0, 2.0, 3.0], [-1.0, 1.0, 0.0], [[0.0, 2.0, 4.0]])
    assert found.standard_error == pytest.approx((2 * (2 * 1 + 1 * 4) / 3 / 3) ** 0.5)
    assert found.df == pytest.approx(6)


def test_what_an_arm_borrows_falls_with_the_square_of_its_excess():
    """All of the weight up to twice the others' variance; a third less than nothing far beyond."""
    rest = np.ones(5)
    found = borrowed(np.array([1.0, 2.0, 4.0, 8.0, 1e9]), rest, 2.0)
    shares = np.array([1, 1, 1 / 4, 1 / 16, 0])
    assert found == pytest.approx(2 * (shares - TAKEN * (1 - shares)))
    assert borrowed(np.array([1e9]), np.ones(1), 0.0) == 0.0  # nobody to borrow from: Welch's test


def test_runs_that_agree_by_chance_borrow_little():
    """Down to 0.15 of the others' variance an arm is steady; below that it says little about its own noise."""
    found = borrowed(np.array([0.16, 0.15, 0.075, 0.0]), np.ones(4), 2.0)
    shares = np.array([1, 1, 1 / 2, 0])
    assert found == pytest.approx(2 * (shares - TAKEN * (1 - shares)))


def test_where_nothing_scatters_nothing_is_borrowed():
    assert borrowed(np.zeros(1), np.zeros(1), 2.0) == -2 * TAKEN


def test_compared_arms_lend_each_other_nothing():
    """A baseline without noise makes the other arm's seem no smaller: its part of the error is the one it had."""
    loud = [0.0, 3.0, 6.0]
    rest, own = 1.0, 9.0
    others = [[0.0, 1.0, 2.0]] * 3
    by_baseline = [moderated(loud, [width, 0.0, -width], others).variances[0] for width in (0.001, 1.0, 3.0)]
    assert by_baseline == pytest.approx([max(own, (2 * own + 3 * rest) / 5)] * 3)
    steady = [moderated([0.0, 0.5, 1.0], [width, 0.0, -width], others).variances[0] for width in (0.001, 1.0, 3.0)]
    assert steady == pytest.approx([(2 * 0.25 + 3 * rest) / 5] * 3)


def test_an_arm_that_scatters_wildly_lends_nothing():
    """On both sides of five times the others' standard deviation, which is 2 here."""
    arm, baseline, usual = [1.0, 2.0, 4.0], [-1.0, 1.0, 0.0], [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
    without = moderated(arm, baseline, usual)
    scale = float(np.sqrt((4 + 4) / 2 / np.log(2)))
    for width, lends in ((4.99 * scale, True), (5.01 * scale, False)):
        found = moderated(arm, baseline, [*usual, [-width, 0.0, width]])
        assert (found != without) == lends
        assert found.standard_error >= without.standard_error * (1 - 1e-9)


@given(scores, scores, st.lists(scores, max_size=4))
def test_no_arm_counts_as_steadier_than_it_is(arm, baseline, others):
    try:
        found, alone = moderated(arm, baseline, others), moderated(arm, baseline)
    except NotTestable:
        return
    assert found.standard_error >= alone.standard_error * (1 - 1e-9)
    assert found.difference == alone.difference


def test_a_contrast_of_equal_variances_by_hand():
    # Four arms of variance 1 and nobody to borrow from: 4 (n - 1) degrees of freedom, and the sum of four errors.
    cells = [[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [7.0, 5.0, 6.0], [0.0, 1.0, -1.0]]
    found = moderated_contrast(cells, [1.0, -1.0, -1.0, 1.0])
    assert found.difference == 2 - 2 - 6 + 0
    assert found.standard_error == pytest.approx((4 / 3) ** 0.5)
    assert found.df == pytest.approx(8)


def test_a_mean_of_two_differences_of_the_same_arms_is_the_difference():
    """Weights that add up on an arm are its weight: nothing is gained by naming an arm twice."""
    found = moderated_contrast([ARM, BASELINE, *OTHERS], [1.0, -1.0, 0.0, 0.0, 0.0])
    assert found.difference == pytest.approx(moderated(ARM, BASELINE).difference)
    halved = moderated_contrast([ARM, BASELINE], [0.5, -0.5], OTHERS)
    whole = moderated(ARM, BASELINE, OTHERS)
    assert (2 * halved.difference, 2 * halved.standard_error) == pytest.approx((whole.difference, whole.standard_error))
    assert (halved.df, halved.p) == pytest.approx((whole.df, whole.p))


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0, 0.0]])
def test_a_contrast_needs_a_weight_for_each_arm(weights):
    with pytest.raises(ValueError, match="a weight each"):
        moderated_contrast([ARM, BASELINE], weights)


def test_what_does_not_matter_changes_nothing():
    usual = moderated(ARM, BASELINE, OTHERS)
    order = RNG.permutation(5)
    alike = [
        moderated(ARM + 7, BASELINE + 7, OTHERS),
        moderated(ARM, BASELINE, [scores + 9 * number for number, scores in enumerate(OTHERS)]),
        moderated(ARM, BASELINE, OTHERS[::-1]),
        moderated(ARM[order], BASELINE[order], [scores[::-1] for scores in OTHERS]),
    ]
    for found in alike:
        assert (found.difference, found.p, found.df) == pytest.approx((usual.difference, usual.p, usual.df))
    turned = moderated(BASELINE, ARM, OTHERS)
    assert (turned.difference, turned.p) == pytest.approx((-usual.difference, usual.p))
    scaled = moderated(10 * ARM, 10 * BASELINE, [10 * scores for scores in OTHERS])
    assert (scaled.standard_error, scaled.p) == pytest.approx((10 * usual.standard_error, usual.p))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_interval_excludes_zero_where_p_is_below_its_error(level):
    for shift in np.linspace(0, 3, 40):
        found = moderated(BASELINE + shift + 0.2 * ARM, BASELINE, OTHERS)
        assert found.at(level).excludes(0.0) == (found.p < 1 - level)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(NotTestable, match="noise is not so regular"):
        moderated([1.0, 2.0, 3.0], [0.0, 1.0, 2.0], OTHERS)
    with pytest.raises(NotTestable, match="at least 2 seeds"):
        moderated([1.0], [2.0], OTHERS)
    with pytest.raises(ValueError, match="same seeds"):
        moderated([1.0, 2.0, 3.0], [1.0, 2.0], OTHERS)
    with pytest.raises(ValueError, match="must be finite"):
        moderated([1.0, 2.0, float("nan")], [1.0, 2.0, 4.0], OTHERS)


def test_three_seeds_find_more_and_err_no_more():
    """Where all arms scatter alike; benchmarks/calibration has the other rows."""
    rng, times = np.random.default_rng(5), 3000
    false = found = paired = 0
    for _ in range(times):
        arms = rng.normal(size=(5, 3))
        false += moderated(arms[0], arms[1], arms[2:]).p < 0.05
        found += moderated(arms[0] + 1.5, arms[1], arms[2:]).p < 0.05
        paired += of_differences(arms[0] + 1.5 - arms[1]).p < 0.05
    assert false / times < 0.055
    assert found / times > 1.4 * paired / times
