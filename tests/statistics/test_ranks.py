"""Worst-rank comparisons: exact for any outcomes, failures included."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from ablab.statistics import diverged
from ablab.statistics.diverged import DIVERGED, compare_ranks


def outcomes(rng, runs, share=0.3):
    """Rounded, so that there are ties."""
    return np.where(rng.random(runs) < share, DIVERGED, rng.normal(size=runs).round(1))


def by_enumeration(arm, baseline):
    """p over every division of the runs into arms of these sizes."""
    ranked = stats.rankdata(np.concatenate([arm, baseline]))
    sums = np.array([ranked[list(chosen)].sum() for chosen in combinations(range(ranked.size), len(arm))])
    found = ranked[: len(arm)].sum()
    return min(1.0, 2 * min((sums <= found + 1e-9).mean(), (sums >= found - 1e-9).mean()))


@pytest.mark.parametrize(("ours", "theirs"), [(5, 5), (5, 7), (6, 3)])
def test_p_is_that_of_every_division_of_the_runs(ours, theirs):
    rng = np.random.default_rng(ours)
    for _ in range(20):
        arm, baseline = outcomes(rng, ours), outcomes(rng, theirs)
        assert compare_ranks(arm, baseline).p == pytest.approx(by_enumeration(arm, baseline))


def test_p_without_ties_is_that_of_the_exact_test():
    rng = np.random.default_rng(0)
    arm, baseline = rng.normal(size=9), rng.normal(size=8) + 1
    assert compare_ranks(arm, baseline).p == pytest.approx(stats.mannwhitneyu(arm, baseline, method="exact").pvalue)


def test_many_runs_are_approximated_and_the_approximation_is_near(monkeypatch):
    rng = np.random.default_rng(3)
    arm, baseline = outcomes(rng, 30), outcomes(rng, 30, share=0.5)
    exact = compare_ranks(arm, baseline).p
    monkeypatch.setattr(diverged, "MOST_EXACT", 10)
    approximate = compare_ranks(arm, baseline).p
    assert approximate != exact
    assert approximate == pytest.approx(exact, rel=0.05)


def test_estimate_by_hand():
    """Of nine pairs the arm wins five, loses two, and ties one value and one failure."""
    found = compare_ranks([3.0, 2.0, DIVERGED], [2.0, 1.0, DIVERGED])
    assert (found.won, found.lost) == pytest.approx((5 / 9, 2 / 9))
    assert found.difference == pytest.approx(3 / 9)


def test_swapping_the_arms_negates():
    rng = np.random.default_rng(1)
    arm, baseline = outcomes(rng, 6), outcomes(rng, 5)
    one, other = compare_ranks(arm, baseline, 0.3), compare_ranks(baseline, arm, 0.3)
    assert (one.difference, one.p, one.beyond) == pytest.approx((-other.difference, other.p, other.beyond))


def test_any_rising_scale_gives_the_same():
    rng = np.random.default_rng(2)
    arm, baseline = outcomes(rng, 6), outcomes(rng, 6)
    scaled = [np.where(scores == DIVERGED, DIVERGED, np.exp(scores)) for scores in (arm, baseline)]
    assert compare_ranks(*scaled) == compare_ranks(arm, baseline)


def test_only_the_order_of_survivors_and_the_number_of_failures_count():
    """Where no run of an arm survives, how good those of the other are is nothing."""
    none = [DIVERGED] * 5
    assert compare_ranks([1.0, 2.0, 3.0, 4.0, DIVERGED], none) == compare_ranks([9.0, 9.0, 9.0, 9.0, DIVERGED], none)
    assert compare_ranks(none, none).p == 1.0


def test_a_diverged_run_lowers_an_arm_wherever_it_stood():
    arm, baseline = np.arange(5.0), np.arange(5.0) + 0.5
    for place in range(5):
        worse = arm.copy()
        worse[place] = DIVERGED
        assert compare_ranks(worse, baseline).difference <= compare_ranks(arm, baseline).difference


def test_one_failure_of_ten_in_the_baseline_hides_no_large_difference():
    baseline = [*np.linspace(10, 11, 9), DIVERGED]
    assert compare_ranks(np.linspace(30, 31, 10), baseline, 1.0).beyond < 1e-4


@pytest.mark.parametrize("margin", [0.5, 1.0, 2.5])
def test_beyond_the_margin_is_ahead_without_it(margin):
    rng = np.random.default_rng(4)
    arm, baseline = rng.normal(size=6) + 3, outcomes(rng, 6)
    found = compare_ranks(arm, baseline, margin)
    shifted = compare_ranks(arm - margin, baseline)
    assert found.beyond == (max(found.p, shifted.p) if shifted.difference > 0 else 1.0)
    assert found.beyond >= found.p
    assert compare_ranks(arm, baseline, 0.0).beyond == found.p


def test_a_true_null_is_rejected_at_most_five_percent():
    rng, runs, times = np.random.default_rng(5), 5, 1500
    rejected = sum(compare_ranks(outcomes(rng, runs, 0.2), outcomes(rng, runs, 0.2)).p <= 0.05 for _ in range(times))
    assert rejected / times <= 0.05 + 3 * (0.05 * 0.95 / times) ** 0.5


@pytest.mark.parametrize("scores", [[], [[1.0]], [float("nan"), 1.0], [float("inf")]])
def test_scores_are_numbers_or_failures(scores):
    with pytest.raises(ValueError, match="baseline must be"):
        compare_ranks([1.0], scores)


def test_a_margin_is_a_size():
    with pytest.raises(ValueError, match="margin"):
        compare_ranks([1.0], [2.0], -1.0)
