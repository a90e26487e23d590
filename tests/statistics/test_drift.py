"""Converged, or under-trained."""

import numpy as np
import pytest
from scipy import stats

from ablab.statistics.convergence import drift
from ablab.statistics.interval import NotTestable

STEPS = np.arange(250, 4001, 250)


def curves(seeds, rate, noise, rng, end=35.0):
    """BLEU that approaches its end, and still gains `rate` over the last fifth of 4,000 steps."""
    decay = 4000 / 6
    slope = rate / (np.exp(-3200 / decay) - np.exp(-4000 / decay))
    level = end - slope * np.exp(-STEPS / decay)
    return [(STEPS, level + noise * rng.normal(size=STEPS.size)) for _ in range(seeds)]


def states(seeds, rate, noise, times=200):
    rng = np.random.default_rng(5)
    found = [drift(curves(seeds, rate, noise, rng), threshold=0.5, higher_is_better=True) for _ in range(times)]
    return {state: np.mean([f.state == state for f in found]) for state in ("moving", "still", "unclear")}


def test_a_straight_line_by_hand():
    """0.01 a step; the last fifth of 100 steps is 20 long."""
    result = drift([(range(0, 101, 5), [0.01 * s for s in range(0, 101, 5)])], threshold=0.1, higher_is_better=True)
    assert result.state == "moving"
    assert (result.improvement, result.low) == pytest.approx((0.2, 0.2))


@pytest.mark.parametrize("points", [3, 4, 6, 9])
def test_the_interval_of_one_curve_is_that_of_a_regression_and_of_several_that_of_their_rises(points):
    rng = np.random.default_rng(points)
    steps = np.concatenate([[0.0], np.linspace(80, 100, points)])
    drawn = [rng.normal(size=points + 1) for _ in range(4)]
    fits = [stats.linregress(steps[1:], values[1:]) for values in drawn]
    one = drift([(steps, drawn[0])], threshold=1.0, higher_is_better=True)
    half = stats.t.ppf(0.95, points - 2) * fits[0].stderr * 20
    assert (one.low, one.high) == pytest.approx((fits[0].slope * 20 - half, fits[0].slope * 20 + half))
    rises = [fit.slope * 20 for fit in fits]
    every = drift([(steps, values) for values in drawn], threshold=1.0, higher_is_better=True)
    assert (every.low, every.high) == pytest.approx(
        stats.t.interval(0.9, 3, loc=np.mean(rises), scale=stats.sem(rises))
    )


def test_a_loss_improves_downwards():
    (steps, values), *_ = curves(1, 2.0, 0.0, np.random.default_rng(0))
    up = drift([(steps, values)], threshold=0.5, higher_is_better=True)
    down = drift([(steps, -values)], threshold=0.5, higher_is_better=False)
    assert up == down
    assert drift([(steps, values)], threshold=0.5, higher_is_better=False).state == "still"


def test_noise_alone_is_rarely_taken_for_movement():
    """Noise of 0.5 BLEU from one validation to the next, a flat end."""
    for seeds in (1, 3, 5, 10):
        assert states(seeds, 0.0, 0.5)["moving"] <= 0.08


def test_under_training_is_found():
    """Still gaining 3 BLEU over the last fifth."""
    for seeds in (3, 5, 10):
        assert states(seeds, 3.0, 0.5)["moving"] >= 0.9


def test_a_flat_end_is_shown_to_be_flat_with_enough_seeds():
    assert states(10, 0.0, 0.3)["still"] >= 0.9


def test_a_tiny_slope_of_a_smooth_curve_does_not_matter():
    assert states(5, 0.1, 0.001) == {"moving": 0.0, "still": 1.0, "unclear": 0.0}


def test_getting_worse_is_not_under_training():
    assert states(5, -3.0, 0.5)["moving"] == 0


def test_two_points_of_one_curve_leave_noise_unknown():
    """The default run validates five times: steps 640 and 800 are its last fifth."""
    result = drift([([160, 320, 480, 640, 800], [9, 34, 50, 62, 64])], threshold=0.5, higher_is_better=True)
    assert (result.state, result.low) == ("moving", None)
    flat = drift([([160, 320, 480, 640, 800], [9, 34, 50, 62, 62.1])], threshold=0.5, higher_is_better=True)
    assert flat.state == "unclear"


def test_curves_may_end_at_different_steps():
    first, second = curves(2, 0.0, 0.1, np.random.default_rng(0))
    shorter = (second[0][:10], second[1][:10])
    both, *each = (drift(one, threshold=0.5, higher_is_better=True) for one in ([first, shorter], [first], [shorter]))
    assert both.improvement == pytest.approx(np.mean([one.improvement for one in each]))


def test_too_few_validations_are_refused():
    with pytest.raises(NotTestable, match="two validations"):
        drift([([400, 800], [30, 31])], threshold=0.5, higher_is_better=True)
    with pytest.raises(NotTestable, match="no validation curve"):
        drift([], threshold=0.5, higher_is_better=True)
    with pytest.raises(ValueError, match="threshold"):
        drift(curves(1, 0, 0, np.random.default_rng(0)), threshold=0.0, higher_is_better=True)
    with pytest.raises(ValueError, match="increase"):
        drift([([3, 2, 1], [0, 0, 0])], threshold=0.5, higher_is_better=True)
