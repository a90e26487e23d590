"""Arms and differences between them, over seeds."""

from decimal import Decimal

import numpy as np
import pytest
from scipy import stats

from ablab.statistics.interval import NotTestable
from ablab.statistics.paired import (
    of_differences,
    paired_difference,
    t_interval,
    tost,
    vary,
    without_rounding,
)

RNG = np.random.default_rng(1)
ARM, BASELINE = RNG.normal(30.5, 0.5, 6), RNG.normal(30, 0.5, 6)


def test_the_interval_of_three_by_hand():
    interval = t_interval(np.array([1.0, 2.0, 3.0]), 0.95)
    # t(0.975, 2) = 4.302653 in every printed table.
    assert interval.high - 2.0 == 2.0 - interval.low == pytest.approx(4.302653 / 3**0.5, rel=1e-6)
    assert "t interval over 3 seeds" in interval.method


def test_a_diverged_run_is_no_number_to_average():
    with pytest.raises(ValueError, match="share of failures"):
        paired_difference([30.0, float("nan")], [30.0, 31.0])


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_paired_test_and_interval_are_scipys(level):
    ours, theirs = paired_difference(ARM, BASELINE), stats.ttest_rel(ARM, BASELINE)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-12)
    expected, found = theirs.confidence_interval(level), ours.at(level)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_swapping_the_arms_negates():
    one, other = paired_difference(ARM, BASELINE), paired_difference(BASELINE, ARM)
    assert one.difference == -other.difference
    assert one.p == other.p
    ours, theirs = one.at(0.95), other.at(0.95)
    assert (ours.low, ours.high) == pytest.approx((-theirs.high, -theirs.low))


def test_what_both_arms_share_and_the_order_of_seeds_change_nothing():
    one, order = paired_difference(ARM, BASELINE), RNG.permutation(6)
    shared = RNG.normal(0, 5, 6)
    for other in (
        paired_difference(ARM + shared, BASELINE + shared),
        paired_difference(ARM[order], BASELINE[order]),
    ):
        assert (other.difference, other.p) == pytest.approx((one.difference, one.p), rel=1e-9)


def test_a_constant_added_to_one_arm_moves_the_interval():
    one, other = paired_difference(ARM, BASELINE), paired_difference(ARM + 2, BASELINE)
    assert other.at(0.95).low == pytest.approx(one.at(0.95).low + 2)


@pytest.mark.parametrize(
    ("differences", "missing"), [([], "2 seeds"), ([0.3], "2 seeds"), ([0.1 + 0.2, 0.3], "not so regular")]
)
def test_refuses_what_has_no_noise_to_judge_by(differences, missing):
    with pytest.raises(NotTestable, match=missing):
        of_differences(differences)


def test_scores_of_unequal_seeds_are_not_paired():
    with pytest.raises(ValueError, match="paired by seed"):
        paired_difference([1.0, 2.0], [1.0, 2.0, 3.0])


def _tost(differences, margin):
    found = of_differences(differences)
    return tost(found.difference, found.standard_error, found.df, margin)


@pytest.mark.parametrize("margin", [0.3, 0.8, 1.2, 3.0])
def test_equivalent_if_and_only_if_the_ninety_percent_interval_is_within(margin):
    within = of_differences(ARM - BASELINE).at(0.9).within(margin)
    assert within == (_tost(ARM - BASELINE, margin) < 0.05)


def test_tost_is_the_larger_of_scipys_one_sided_tests():
    differences = ARM - BASELINE
    low = stats.ttest_1samp(differences, -2.0, alternative="greater").pvalue
    high = stats.ttest_1samp(differences, 2.0, alternative="less").pvalue
    assert _tost(differences, 2.0) == pytest.approx(max(low, high), rel=1e-10)


def test_a_difference_at_the_margin_is_as_likely_within_as_beyond():
    differences = ARM - BASELINE
    assert _tost(differences, abs(differences.mean())) == pytest.approx(0.5)


@pytest.mark.parametrize("size", ["1e-12", "1", "100", "12345", "1e8", "1e200"])
def test_a_constant_difference_has_no_noise_whatever_the_size_of_the_scores(size):
    """As decimals the scores differ by the same under each seed; as doubles, by that and rounding."""
    baseline = [Decimal(size) * Decimal(share) for share in ("1.0001", "0.9873", "1.0317", "1.1", "0.7")]
    arm = [score + Decimal(size) * Decimal("0.0243") for score in baseline]
    with pytest.raises(NotTestable, match="under each of 5 seeds, and noise is not so regular"):
        paired_difference([float(score) for score in arm], [float(score) for score in baseline])


@pytest.mark.parametrize("size", [1e-12, 1.0, 12345.0, 1e8])
@pytest.mark.parametrize(("share", "varies"), [(0.9e-12, False), (1.1e-12, True)])
def test_noise_is_what_exceeds_a_million_millionth_of_the_scores(size, share, varies):
    differences, scores = np.array([size / 10, size / 10 + share * size]), [size, size / 2]
    assert vary(differences, size) == varies
    assert (np.ptp(without_rounding(differences, scores)) > 0) == varies
    assert without_rounding(differences, scores).mean() == pytest.approx(differences.mean())


def test_differences_whose_squares_are_none_have_no_noise():
    with pytest.raises(NotTestable, match="noise is not so regular"):
        paired_difference([1e-170, 2e-170, 3.5e-170], [5e-170, 7e-170, 6e-170])
    assert paired_difference([1e-140, 2e-140, 3.5e-140], [5e-140, 7e-140, 6e-140]).p < 0.05


def test_tiny_scores_have_their_noise_and_small_differences_between_large_ones_too():
    assert paired_difference([3e-12, 4e-12, 6e-12], [1e-12, 1e-12, 1e-12]).sd == pytest.approx(1.5275e-12, rel=1e-4)
    assert paired_difference([12345.1, 12345.2, 12345.4], [12345.0] * 3).sd == pytest.approx(0.15275, rel=1e-4)


def test_a_change_of_unit_changes_no_test():
    for unit in (1e-13, 1e-8, 1e8, 1e13):
        other = paired_difference(ARM * unit, BASELINE * unit)
        assert other.p == pytest.approx(paired_difference(ARM, BASELINE).p, rel=1e-9)


def test_no_difference_is_zero_and_not_its_rounding():
    assert without_rounding(np.array([1e-15, -2e-15, 2e-15]), [30.1, 30.2, 30.4]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("n", [2, 3, 7])
def test_it_has_a_degree_of_freedom_less_than_seeds(n):
    assert of_differences(np.arange(n, dtype=float) ** 2).df == n - 1
