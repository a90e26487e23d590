"""What a gain is worth in compute: Fieller's interval, what changes nothing, a saturated baseline, and early curves."""

import math

import numpy as np
import pytest
from scipy import stats

from ablab.statistics.moderated import moderated_contrast
from ablab.statistics.worth import as_good_from, contrast, worth


def drawn(seed, n, means, sd=1.0):
    rng = np.random.default_rng(seed)
    return [rng.normal(mean, sd, n) for mean in means]


def fieller(arm, baseline, double, level=0.95):
    """The interval of exp(ln 2 gain / rise) with one variance for all arms, by the roots of its quadratic.

    The gain and what the baseline gains from twice the compute vary together, by the baseline.
    """
    n = len(arm)
    variance = np.mean([scores.var(ddof=1) for scores in (arm, baseline, double)]) / n
    t = stats.t.ppf((1 + level) / 2, 3 * (n - 1))
    gain, rise = arm.mean() - baseline.mean(), double.mean() - baseline.mean()
    a, b, c = rise**2 - 2 * t**2 * variance, -2 * gain * rise + 2 * t**2 * variance, gain**2 - 2 * t**2 * variance
    root = math.sqrt(b * b - 4 * a * c)
    return 2 ** ((-b - root) / (2 * a)), 2 ** ((-b + root) / (2 * a))


@pytest.mark.parametrize("gain", [1.4, 2.0, 3.1])
def test_beyond_twice_the_compute_it_is_fiellers_interval_with_many_seeds(gain):
    scores = drawn(1, 4000, (gain, 0.0, -1.3, 1.0))
    found = worth(*scores)
    assert found.low > 2
    assert (found.low, found.high) == pytest.approx(fieller(*scores[:2], scores[3]), rel=2e-3)
    assert found.factor == pytest.approx(
        2 ** ((scores[0].mean() - scores[1].mean()) / (scores[3].mean() - scores[1].mean()))
    )
    assert not found.saturated


FACTORS = (0.3, 0.5, 0.7, 1.0, 1.2, 1.5, 2.0, 3.0)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("bend", [0.0, 0.1, -0.15])
def test_on_a_parabola_of_compute_the_factor_is_exact(factor, bend):
    """Of the logarithm; outside of half to twice the compute, on the straight line that goes on."""
    noise = np.array([-0.1, 0.02, 0.08, 0.0, 0.01])

    def score(times):
        doublings = math.log2(times)
        if abs(doublings) > 1:
            return abs(doublings) * score(2 ** math.copysign(1, doublings))
        return doublings + bend * doublings**2

    scores = [score(times) + np.roll(noise, turn) for turn, times in enumerate((factor, 1.0, 0.5, 2.0))]
    assert worth(*scores).factor == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize("factor", FACTORS)
def test_a_contrast_is_no_noisier_between_the_lengths_than_a_difference(factor):
    arm, *weights = contrast(factor)
    assert arm == 1
    assert sum(weights) == pytest.approx(-1)
    assert (sum(weight**2 for weight in weights) <= 1) == (0.5 <= factor <= 2)


@pytest.mark.parametrize(("factor", "weights"), [(1, (1, -1, 0, 0)), (0.5, (1, 0, -1, 0)), (2, (1, 0, 0, -1))])
def test_at_a_trained_length_a_contrast_is_the_difference_from_it(factor, weights):
    assert contrast(factor) == weights


@pytest.mark.parametrize("end", [0.5, 2.0])
def test_contrasts_go_on_without_a_jump_beyond_the_trained_lengths(end):
    assert contrast(end * (1 - 1e-9)) == pytest.approx(contrast(end * (1 + 1e-9)), abs=1e-8)


@pytest.mark.parametrize("gain", [0.2, 0.9, 2.5])
def test_a_loss_is_a_gain_of_the_mirrored_baseline(gain):
    arm, baseline, half, double = drawn(8, 5, (gain, 0.0, -1.4, 1.0), sd=0.2)
    gained, lost = worth(arm, baseline, half, double), worth(-arm, -baseline, -double, -half)
    ends = 1 / lost.factor, 1 / lost.high, 1 / lost.low
    assert ends == pytest.approx((gained.factor, gained.low, gained.high), rel=1e-6)


def test_the_unit_of_scores_and_their_direction_change_nothing():
    scores = drawn(2, 5, (0.8, 0.0, -1.5, 1.5), sd=0.5)
    found = worth(*scores)
    moved = worth(*(7 + 100 * each for each in scores))
    turned = worth(*(3 - each for each in scores), higher_is_better=False)
    for other in (moved, turned):
        assert (other.factor, other.low, other.high) == pytest.approx((found.factor, found.low, found.high), rel=1e-6)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_a_factor_lies_in_the_interval_where_the_test_of_a_claim_about_it_does_not_reject(seed, paired):
    scores = [
        each + paired * common
        for each, common in zip(
            drawn(seed, 4, (1.0, 0.0, -1.0, 1.0), sd=0.6), [drawn(seed + 50, 4, (0.0,), sd=3.0)[0]] * 4, strict=True
        )
    ]
    found = worth(*scores, paired=paired)
    arm, baseline, half, double = scores

    def p(factor):
        if paired:
            return float(stats.ttest_1samp(np.array(contrast(factor)) @ np.array(scores), 0).pvalue)
        return moderated_contrast([arm, baseline, half, double], contrast(factor)).p

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


def test_only_the_doubling_on_the_side_of_the_gain_says_whether_the_baseline_has_saturated():
    """A baseline that gained up to its own length, and nothing since, cannot tell what a gain is worth."""
    noise = np.array([-0.05, 0.02, 0.05, 0.0, -0.02])
    better, worse = (
        worth(*(mean + np.roll(noise, turn) for turn, mean in enumerate((gain, 0.0, -1.0, 0.0))))
        for gain in (0.5, -0.5)
    )
    assert better.saturated
    assert better.high == math.inf
    assert not worse.saturated
    assert 0.5 < worse.low < worse.factor < worse.high < 1


def test_a_gain_that_no_length_reaches_has_no_factor():
    """The parabola turns before it has come to a fifth of the gain."""
    noise = np.array([-0.05, 0.02, 0.05, 0.0, -0.02])
    scores = [mean + np.roll(noise, turn) for turn, mean in enumerate((0.5, 0.0, -1.0, -0.1))]
    assert worth(*scores).factor is None


def curve_and_ends(seed, n=4, validations=12, rise=3.0):
    rng = np.random.default_rng(seed)
    curve = np.linspace(0, rise, validations)[:, None] + rng.normal(0, 0.5, (validations, n))
    return curve, rng.normal(1, 0.5, n), [rng.normal(2, 0.5, n) for _ in range(3)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_a_curve_is_better_from_where_on_no_validation_fails_its_test(seed, level):
    curve, end, others = curve_and_ends(seed)
    paired = stats.ttest_1samp(curve - end, 0.0, axis=1, alternative="greater").pvalue < (1 - level) / 2
    lent = [moderated_contrast([values, end], [1, -1], others).at(level).low > 0 for values in curve]
    for shown, found in (
        (paired, as_good_from(curve, end, others, paired=True, level=level)),
        (lent, as_good_from(curve, end, others, level=level)),
    ):
        expected = len(curve) - next((back for back, one in enumerate(reversed(list(shown))) if not one), len(curve))
        assert found == (None if expected == len(curve) else expected)


def test_other_arms_lend_a_curve_their_noise():
    """With two seeds, pairs alone show hardly anything."""
    curve, end, others = curve_and_ends(3, n=2)
    assert as_good_from(curve, end, paired=True) is None
    assert as_good_from(curve, end, others) is not None


@pytest.mark.parametrize("paired", [True, False])
def test_a_curve_without_noise_or_without_validations_shows_nothing(paired):
    assert as_good_from([[3.0, 3.0]], [1.0, 1.0], paired=paired) is None
    assert as_good_from(np.empty((0, 3)), [1.0, 2.0, 1.5], paired=paired) is None


def test_the_first_validation_that_happens_to_be_as_good_tells_nothing():
    """Of two arms that are alike, whose curves are flat: by luck, most would seem to be early."""
    rng = np.random.default_rng(6)
    told = lucky = 0
    for _ in range(400):
        curve, end = rng.normal(0, 1, (20, 3)), rng.normal(0, 1, 3)
        told += as_good_from(curve, end, rng.normal(0, 1, (2, 3))) is not None
        lucky += bool((curve >= end).any(axis=0).all())
    assert lucky > 200
    assert told <= 20, "2.5 % are 10 of 400"


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_where_the_baseline_has_saturated_the_interval_has_no_end_on_the_side_of_the_arm(sign):
    noise = np.array([-0.9, -0.3, 0.1, 0.4, 0.7])
    arm, near, far = 0.3 * sign + noise, 2.0 * sign + noise[[1, 4, 0, 3, 2]] * 3, -2.0 * sign + noise[[2, 0, 4, 1, 3]]
    half, double = (far, near) if sign > 0 else (near, far)
    found = worth(arm, noise[[4, 2, 0, 1, 3]], half, double)
    assert found.saturated
    assert found.high == math.inf if sign > 0 else found.low == 0.0
