"""How an arm scatters beside the others, and which runs nearly failed."""

import numpy as np
import pytest

from ablab.statistics.conditions import near_failures as found_in
from ablab.statistics.conditions import of_the_others, ratios, steady

STEADY = {"a": [30.0, 30.4, 30.2], "b": [31.0, 30.5, 30.8], "c": [30.1, 30.3, 30.5]}


def near_failures(arms, higher_is_better=True):
    return found_in(arms, higher_is_better=higher_is_better)


def test_the_others_are_those_without_the_arm():
    """The median of their variances, over ln 2, the median of chi-square with two degrees of freedom over these."""
    arms = [[0.0, sd, 2.0 * sd] for sd in (1.0, 2.0, 3.0, 4.0)]
    expected = np.sqrt(np.array([9.0, 9.0, 4.0, 4.0]) / np.log(2))
    assert of_the_others(arms) == pytest.approx(expected)
    assert ratios(arms) == pytest.approx(np.array([1, 2, 3, 4]) / expected)
    five = [*arms, [0.0, 5.0, 10.0]]
    assert of_the_others(five) == pytest.approx(np.sqrt(np.array([12.5, 12.5, 10, 6.5, 6.5]) / np.log(2)))


def test_arms_of_other_sizes_count_by_their_degrees_of_freedom():
    rng = np.random.default_rng(0)
    sizes = (3, 3, 5, 9)
    found = np.array([of_the_others([rng.normal(size=n) for n in (2, *sizes)])[0] for _ in range(4000)])
    assert np.median(found) == pytest.approx(1.0, abs=0.06)


def test_the_order_of_arms_does_not_matter():
    rng = np.random.default_rng(1)
    arms, order = rng.normal(size=(6, 4)), rng.permutation(6)
    assert ratios(list(arms[order])) == pytest.approx(ratios(list(arms))[order])


@pytest.mark.parametrize(
    "arms", [[], [[1.0]], [[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]] * 2, [[1.0, 1.0, 1.0]] * 5, [[1.0, 2.0], [], [3.0]]]
)
def test_too_little_is_known_to_compare(arms):
    assert np.isnan(ratios(arms)).all()
    assert list(steady({str(number): arm for number, arm in enumerate(arms)}).values()) == arms


def test_two_wild_arms_do_not_hide_each_other():
    wild = {"d": [10.0, 30.0, 50.0], "e": [0.0, 30.0, 60.0]}
    assert steady(STEADY | wild) == STEADY


def test_a_run_far_below_its_arm_nearly_failed():
    arms = {**STEADY, "wild": [30.1, 12.0, 30.5], "good": [33.0] * 3}
    assert near_failures(arms) == {"wild": 1}
    # A run far above is no failure; where lower is better it is.
    losses = {name: [-score for score in scores] for name, scores in arms.items()}
    assert near_failures(losses, higher_is_better=False) == {"wild": 1}
    assert near_failures(losses) == {}


def test_two_that_failed_do_not_hide_each_other():
    assert near_failures({**STEADY, "b": [31.0, 30.5, 5.0], "d": [30.1, 12.0, 30.5]}) == {"b": 2, "d": 1}


def test_an_arm_that_scatters_as_widely_has_no_run_that_failed():
    """One more than six of its own standard deviations below the others is named, one less far is not."""
    spread = np.std([30.0, 34.0], ddof=1)
    assert near_failures({**STEADY, "wide": [34.0, 30.0, 30.0 - 5.9 * spread]}) == {}
    assert near_failures({**STEADY, "wide": [34.0, 30.0, 30.0 - 6.1 * spread]}) == {"wide": 2}


def test_six_standard_deviations_of_the_others_are_needed():
    usual = float(of_the_others([*STEADY.values(), [0.0, 1.0, 2.0]])[-1])
    assert near_failures({**STEADY, "d": [30.0, 30.0, 30.0 - 5.9 * usual]}) == {}
    assert near_failures({**STEADY, "d": [30.0, 30.0, 30.0 - 6.1 * usual]}) == {"d": 2}


def test_four_degrees_of_freedom_of_the_others_say_who_failed_and_three_do_not():
    three = {"a": [30.0, 30.4, 5.0], "b": [31.0, 30.5, 30.9], "c": [30.1, 30.3, 30.5]}
    assert near_failures(three) == {"a": 2}
    assert near_failures({**three, "c": [30.1, 30.3]}) == {}


def test_too_little_scatter_is_known_to_say_who_failed():
    assert near_failures({"a": [30.0, 30.4, 5.0], "b": [31.0, 30.5, 30.9]}) == {}
    assert near_failures({"a": [30.0, 5.0], "b": [31.0, 30.5, 30.9], "c": [3, 3.1, 3.2]}) == {}
