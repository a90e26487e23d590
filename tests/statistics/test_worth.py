"""What a gain is worth in compute: Fieller's interval, what changes nothing, and where the baseline has saturated."""

import math

import numpy as np
import pytest
from scipy import stats

from ablab.statistics.moderated import moderated_contrast
from ablab.statistics.worth import LN4, contrast, worth


def drawn(seed, n, means, sd=1.0):
    rng = np.random.default_rng(seed)
    return [rng.normal(mean, sd, n) for mean in means]


def fieller(arm, baseline, half, double, level=0.95):
    """The interval of exp(gain / slope) with one variance for all arms, by the roots of its quadratic."""
    n = len(arm)
    variance = np.mean([scores.var(ddof=1) for scores in (arm, baseline, half, double)])
    t = stats.t.ppf((1 + level) / 2, 4 * (n - 1))
    gain, slope = arm.mean() - baseline.mean(), (double.mean() - half.mean()) / LN4
    of_gain, of_slope = 2 * variance / n, 2 * variance / n / LN4**2
    a, b, c = slope**2 - t**2 * of_slope, -2 * gain * slope, gain**2 - t**2 * of_gain
    root = math.sqrt(b * b - 4 * a * c)
    return math.exp((-b - root) / (2 * a)), math.exp((-b + root) / (2 * a))


@pytest.mark.parametrize("gain", [-0.4, 0.0, 0.5, 1.3])
def test_with_many_seeds_it_is_fiellers_interval(gain):
    scores = drawn(1, 4000, (gain, 0.0, -1.0, 1.0))
    found = worth(*scores)
    assert (found.low, found.high) == pytest.approx(fieller(*scores), rel=2e-3)
    assert found.low < found.factor < found.high
    assert not found.saturated


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.5, 2.0, 3.0])
def test_on_the_line_of_compute_the_factor_is_exact(factor):
    noise = np.array([-0.1, 0.02, 0.08, 0.0, 0.01])
    scores = [math.log(times) + np.roll(noise, turn) for turn, times in enumerate((factor, 1.0, 0.5, 2.0))]
    assert worth(*scores).factor == pytest.approx(factor, rel=1e-12)


def test_the_unit_of_scores_and_their_direction_change_nothing():
    scores = drawn(2, 5, (0.8, 0.0, -1.5, 1.5), sd=0.5)
    found = worth(*scores)
    moved = worth(*(7 + 100 * each for each in scores))
    turned = worth(*(3 - each for each in scores), higher_is_better=False)
    for other in (moved, turned):
        assert (other.factor, other.low, other.high) == pytest.approx((found.factor, found.low, found.high), rel=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_a_factor_lies_in_the_interval_where_the_test_of_a_claim_about_it_does_not_reject(seed):
    scores = drawn(seed, 4, (1.0, 0.0, -1.0, 1.0), sd=0.6)
    found = worth(*scores)
    arm, baseline, half, double = scores

    def p(factor):
        return moderated_contrast([arm, baseline, double, half], contrast(factor)).p

    inside = math.exp((math.log(max(found.low, 0.1)) + math.log(min(found.high, 20.0))) / 2)
    assert p(inside) > 0.05
    for end in (found.low, found.high):
        if 0 < end < math.inf:
            assert p(end) == pytest.approx(0.05, abs=1e-6)


def test_a_baseline_that_gains_nothing_has_saturated_and_the_factor_has_no_end():
    arm, baseline, half, double = drawn(3, 6, (5.0, 0.0, 0.0, 0.0), sd=0.3)
    found = worth(arm, baseline, half, double)
    assert found.saturated
    assert found.high == math.inf
    assert found.low > 1, "the gain is real, and more than some compute is worth"
    worse = worth(-arm, baseline, half, double)
    assert worse.saturated
    assert worse.low == 0
    assert worse.high < 1
    nothing = worth(drawn(4, 6, (0.0,), sd=0.3)[0], baseline, half, double)
    assert nothing.low < 1 < nothing.high


def test_more_compute_that_harms_has_no_factor():
    found = worth(*drawn(5, 6, (1.0, 0.0, 2.0, -2.0), sd=0.1))
    assert found.saturated
    assert found.factor is None


def test_other_arms_lend_their_noise():
    scores = drawn(6, 3, (0.8, 0.0, -1.5, 1.5), sd=0.5)
    alone = worth(*scores)
    lent = worth(*scores, drawn(7, 3, (0.0,) * 6, sd=0.5))
    assert lent.factor == alone.factor
    assert (lent.low, lent.high) != (alone.low, alone.high)


@pytest.mark.parametrize(("double", "bent"), [(1.0, False), (0.1, True), (2.5, True)])
def test_lengths_that_do_not_lie_on_a_line_are_said_to(double, bent):
    noise = np.array([-0.05, 0.02, 0.05, 0.0, -0.02])
    scores = [mean + np.roll(noise, turn) for turn, mean in enumerate((0.5, 0.0, -1.0, double))]
    assert worth(*scores).bent == bent


def test_at_study_sizes_it_is_near_fiellers_interval_where_all_arms_scatter_alike():
    """The moderated test has fewer degrees of freedom than the pooled one, so that the interval is the wider one."""
    noise = np.array([-1.0, -0.4, 0.3, 1.1, 0.0])
    scores = [mean + 0.2 * np.roll(noise, turn) for turn, mean in enumerate((0.6, 0.0, -1.0, 1.0))]
    low, high = fieller(*scores)
    found = worth(*scores)
    assert found.low == pytest.approx(low, rel=0.03)
    assert found.high == pytest.approx(high, rel=0.03)
