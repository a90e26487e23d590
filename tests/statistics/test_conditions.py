"""What the runs show of the conditions of a test: as often as stated where they hold, and mostly where they do not."""

import numpy as np
import pytest
from scipy import stats

from ablab.statistics.conditions import LEVEL, follow_the_order, in_two_groups, shared
from benchmarks.calibration.worlds import WORLDS

STUDIES = 1500
ALIKE = "all arms scatter alike"


def rate(sign, world, arms, n, studies=STUDIES):
    drawn = WORLDS[world](np.random.default_rng(7), (studies, arms, n))
    return np.mean([sign(list(study)) for study in drawn])


def opposed(study):
    found = shared(study[0], study[1:])
    return found.is_shown and found.correlation < 0


def together(study):
    found = shared(study[0], study[1:])
    return found.is_shown and found.correlation > 0


@pytest.mark.parametrize("sign", [in_two_groups, follow_the_order, opposed, together])
@pytest.mark.parametrize(("arms", "n"), [(2, 5), (5, 5), (5, 7)])
@pytest.mark.parametrize("world", [ALIKE, "one arm's sd is 5 times as large"])
def test_sound_studies_are_seldom_warned_of(sign, arms, n, world):
    assert rate(sign, world, arms, n) <= LEVEL + 4 * (LEVEL / STUDIES) ** 0.5


@pytest.mark.parametrize(
    ("sign", "world", "arms", "n", "least"),
    [
        (in_two_groups, "scores fall into two groups, 8 apart, sd 0.3", 5, 3, 0.5),
        (in_two_groups, "scores fall into two groups, 8 apart, sd 0.3", 2, 5, 0.8),
        (follow_the_order, "seeds follow each other, AR(1) at 0.5", 5, 10, 0.5),
        (opposed, "seeds of baseline and arms correlate at -0.6", 5, 3, 0.3),
        (together, "seeds correlate at 0.9 across arms", 5, 3, 0.7),
    ],
)
def test_other_worlds_are_mostly_warned_of(sign, world, arms, n, least):
    assert rate(sign, world, arms, n, 300) > least


def test_seeds_in_common_are_no_order():
    """All arms move together from seed to seed: a test of each arm alone would count that as often as there are."""
    assert rate(follow_the_order, "seeds correlate at 0.9 across arms", 5, 7) <= LEVEL + 4 * (LEVEL / STUDIES) ** 0.5


def test_units_and_means_do_not_matter():
    rng = np.random.default_rng(1)
    for study in rng.normal(size=(20, 4, 6)):
        moved = 7.0 + 100 * study
        assert in_two_groups(list(study)) == in_two_groups(list(moved))
        assert follow_the_order(list(study)) == follow_the_order(list(moved))
        assert shared(study[0], study[1:]) == pytest.approx(shared(moved[0], moved[1:]))


@pytest.mark.parametrize("n", [3, 6])
def test_with_one_other_arm_the_slope_is_that_of_a_line(n):
    """Down to one degree of freedom."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=n)
    y = x + rng.normal(size=n)
    found, line = shared(x, [y]), stats.linregress(x, y)
    assert found == pytest.approx((line.rvalue, line.pvalue / 2))


@pytest.mark.parametrize("n", [3, 4])
def test_few_seeds_have_too_few_orders(n):
    assert not follow_the_order([np.arange(n)] * 5)
    assert follow_the_order([np.arange(5.0)] * 5)


@pytest.mark.parametrize("sign", [1, -1])
def test_scores_that_are_all_in_line_correlate_for_certain(sign):
    x = [3.0, 1.0, 4.0, 2.0, 5.0]
    assert shared(x, [[2 * sign * value for value in x]]) == (pytest.approx(sign), 0.0)


def test_scores_that_do_not_vary_show_nothing():
    constant = [[1.0, 1.0, 1.0]] * 3
    assert not in_two_groups(constant)
    assert not follow_the_order(constant)
    assert shared(constant[0], constant[1:]) is None
    assert shared([1.0, 2.0], [[1.0, 3.0]]) is None


@pytest.mark.parametrize("step", [0.5, 1.0, 2.0])
def test_rounding_makes_no_two_groups(step):
    """Whole per cents of a test set of a few hundred items, or a published table."""
    rng = np.random.default_rng(7)
    found = [in_two_groups([np.round(rng.normal(0, 1, 5) / step) * step for _ in range(5)]) for _ in range(400)]
    assert np.mean(found) < 0.06
    groups = [np.round(rng.normal(0, 0.3, 5) + 8 * (np.arange(5) % 2)) for _ in range(5)]
    assert in_two_groups(groups)
