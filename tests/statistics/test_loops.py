"""Looks at proposals of a loop, and its confirmation: levels on both sides, known tests, and the error they keep."""

import numpy as np
import pytest
from online_fdr.p_values.investing.lord.plus_plus import LordPlusPlus
from scipy import stats

from ablab.statistics.interval import NotTestable
from ablab.statistics.loops import LookLevels, confirm, difference, look
from ablab.statistics.multiple import holm
from benchmarks.calibration.loops import _holm, compared, discoveries, measured

FLOOR = [0.1, -0.3, 0.2, 0.0, 0.4, -0.1, -0.2, 0.3]


def drawn(shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


def at_p(p, seeds=1):
    """Return a proposal of equal scores whose one-sided p against the floor is this; there is no noise of its own."""
    floor = np.array(FLOOR)
    df = seeds + len(floor) - 2
    error = np.sqrt(((floor - floor.mean()) ** 2).sum() / df * (1 / seeds + 1 / len(floor)))
    return [float(floor.mean() + stats.t.isf(p, df) * error)] * seeds


def test_with_one_run_the_noise_is_that_of_the_floor():
    """A prediction interval for one more run: (x - mean) / (s sqrt(1 + 1 / m)) has m - 1 degrees of freedom."""
    floor = np.array(FLOOR)
    t = (0.5 - floor.mean()) / (floor.std(ddof=1) * np.sqrt(1 + 1 / len(floor)))
    found = difference([0.5], FLOOR, higher_is_better=True)
    assert found.p == pytest.approx(stats.t.sf(t, len(floor) - 1))
    assert found.high - found.estimate == pytest.approx(found.estimate - found.low)


@pytest.mark.parametrize("size", [0.2, 1.0, 4.0])
def test_with_more_it_is_the_larger_p_of_two_known_tests(size):
    one = size * drawn(5) + 0.4
    both = [stats.ttest_ind(one, FLOOR, equal_var=equal, alternative="greater").pvalue for equal in (True, False)]
    assert difference(one, FLOOR, higher_is_better=True).p == pytest.approx(max(both))


def test_lower_is_better_mirrors_the_scores():
    up = difference([0.5, 0.7], FLOOR, higher_is_better=True)
    down = difference([-0.5, -0.7], [-score for score in FLOOR], higher_is_better=False)
    assert (up.p, up.estimate) == pytest.approx((down.p, -down.estimate))


@pytest.mark.parametrize(("seeds", "level"), [(1, 0.35), (2, 0.20), (3, 0.12)])
def test_a_proposal_goes_on_up_to_the_level_of_a_look(seeds, level):
    floor = FLOOR
    for p, outcome in ((level - 1e-9, "go on"), (level + 1e-9, "dropped")):
        proposal = at_p(p, seeds)
        if seeds > 1:  # equal scores have no noise, so that of Welch is the floor's alone: a smaller p
            assert difference(proposal, floor, higher_is_better=True).p == pytest.approx(p, rel=1e-6)
        assert look(proposal, floor, LookLevels(), higher_is_better=True).outcome == outcome


def test_the_last_look_decides():
    kept, dropped = (look(at_p(p, 5), FLOOR, LookLevels(), higher_is_better=True) for p in (0.05 - 1e-9, 0.05 + 1e-9))
    assert (kept.outcome, kept.wanted) == ("kept", 0)
    assert (dropped.outcome, dropped.wanted) == ("dropped", 0)


def test_each_look_says_how_many_seeds_the_next_takes():
    assert [look([5.0] * seeds, FLOOR, LookLevels(), higher_is_better=True).wanted for seeds in (1, 2, 3, 5)] == [
        2,
        3,
        5,
        0,
    ]


def test_without_any_noise_only_a_real_difference_is_better():
    for score, p in ((0.0, 0.5), (1.0, 0.0), (-1.0, 1.0)):
        assert difference([score, score], [0.0, 0.0], higher_is_better=True).p == p


def test_rounding_is_no_difference():
    """0.1 + 0.2 is not 0.3 to the last digit."""
    found = difference([0.1 + 0.2], [0.3] * 8, higher_is_better=True)
    assert (found.estimate, found.p) == (0.0, 0.5)
    assert difference([0.3 + 1e-9], [0.3] * 8, higher_is_better=True).p == 0.0


@pytest.mark.parametrize(
    ("levels", "reason"),
    [
        ({"looks": ()}, "rise from 1"),
        ({"looks": (0, 2, 3, 5)}, "rise from 1"),
        ({"looks": (1, 3, 3, 5)}, "rise from 1"),
        ({"stop": (0.3, 0.2)}, "each look but the last"),
        ({"stop": (0.3, 0.2, 1.0)}, "between 0 and 1"),
        ({"keep": 0.0}, "between 0 and 1"),
    ],
)
def test_levels_that_cannot_be_are_refused(levels, reason):
    with pytest.raises(ValueError, match=reason):
        LookLevels(**levels)


def test_there_is_no_look_in_between_and_none_without_noise():
    with pytest.raises(ValueError, match="there are looks after"):
        look([1.0] * 4, FLOOR, LookLevels(), higher_is_better=True)
    with pytest.raises(ValueError, match="two runs on one side"):
        look([1.0], [0.0], LookLevels(), higher_is_better=True)


def test_a_confirmation_of_one_change_is_one_test():
    found = confirm([1.0, 1.2, 0.9], {}, ("the first", [0.0, 0.2, 0.1]), higher_is_better=True)
    (one,) = found.values()
    assert one.p == one.holm_p == difference([1.0, 1.2, 0.9], [0.0, 0.2, 0.1], higher_is_better=True).p


def test_a_confirmation_of_more_shares_noise_and_error():
    whole, arms = drawn(10) + 3, {f"without {i}": drawn(5, seed=i) + i for i in (2, 3)}
    found = confirm(whole, arms, ("the first", drawn(5, seed=9)), higher_is_better=True)
    values = [whole, *arms.values()]
    df = sum(len(each) - 1 for each in values)
    noise = sum(each.var(ddof=1) * (len(each) - 1) for each in values) / df
    t = (whole.mean() - arms["without 2"].mean()) / np.sqrt(noise * (1 / 10 + 1 / 5))
    assert found["without 2"].p == pytest.approx(stats.t.sf(t, df))
    assert [one.holm_p for one in found.values()] == pytest.approx(list(holm([one.p for one in found.values()])))
    assert found["without 2"].stands
    assert not found["without 3"].stands


def test_a_confirmation_of_what_should_be_low_is_that_of_the_negatives():
    arms = {f"without {i}": drawn(5, seed=i) + i for i in (2, 3)}
    whole, first = drawn(10), drawn(5, seed=9) + 2
    low = confirm(whole, arms, ("the first", first), higher_is_better=False)
    mirrored = {name: -each for name, each in arms.items()}
    high = confirm(-whole, mirrored, ("the first", -first), higher_is_better=True)
    for name, one in low.items():
        assert (one.p, one.stands) == (pytest.approx(high[name].p), high[name].stands)
        assert (one.low, one.high) == pytest.approx((-high[name].high, -high[name].low))
        assert one.low < one.estimate < one.high
    assert all(one.stands for one in low.values())
    # The interval of an arm without a change is that of the noise which all of them share.
    values = [whole, *arms.values()]
    df = sum(len(each) - 1 for each in values)
    noise = sum(each.var(ddof=1) * (len(each) - 1) for each in values) / df
    half = stats.t.ppf(0.975, df) * np.sqrt(noise * (1 / 10 + 1 / 5))
    assert low["without 2"].high - low["without 2"].estimate == pytest.approx(half)


def test_a_line_of_a_confirmation_stands_at_its_error_and_not_below():
    given = drawn(10) + 1, {"without 2": drawn(5, seed=2)}, ("the first", drawn(5, seed=9))
    at = confirm(*given, higher_is_better=True)["without 2"].holm_p
    assert confirm(*given, higher_is_better=True, error=at)["without 2"].stands
    assert not confirm(*given, higher_is_better=True, error=at * (1 - 1e-9))["without 2"].stands


@pytest.mark.parametrize("score", [0.1, 0.7, 0.123456])
@pytest.mark.parametrize("higher", [True, False])
def test_what_rounding_leaves_between_means_confirms_nothing(score, higher):
    """The mean of eighteen equal numbers less that of six is 3e-17, and so is their noise."""
    whole, without = [score] * 18, {"without 2": [score] * 6}
    found = confirm(whole, without, ("the first", drawn(6)), higher_is_better=higher)["without 2"]
    assert (found.estimate, found.p, found.stands) == (0.0, 0.5, False)
    for first in (score, score + 1):
        with pytest.raises(NotTestable, match="one score"):
            confirm(whole, without, ("the first", [first] * 6), higher_is_better=higher)


def test_a_comparison_with_nothing_is_refused():
    with pytest.raises(ValueError, match="got 0 and 2"):
        difference([], [1.0, 2.0], higher_is_better=True)


def test_the_tests_of_many_loops_are_those_of_one():
    for sizes in ((1, 8), (2, 8), (5, 5), (10, 5)):
        one, other = drawn((20, sizes[0])), drawn((20, sizes[1]), seed=2)
        wanted = [difference(a, b, higher_is_better=True).p for a, b in zip(one, other, strict=True)]
        assert compared(one, other) == pytest.approx(wanted)
    p = np.random.default_rng(3).random((50, 4)) ** 3
    assert (_holm(p, np.full(50, 4)) == np.array([holm(row) <= 0.05 for row in p])).all()


def test_lord_finds_what_an_independent_implementation_finds():
    for seed in range(40):
        p = np.random.default_rng(seed).random(100) ** (1 + seed % 8)
        oracle = LordPlusPlus(alpha=0.05, wealth=0.025)
        assert discoveries(p).tolist() == [oracle.test_one(each) for each in p.tolist()]


def test_lord_spends_its_wealth_as_published():
    """With no discovery the levels add up to the wealth at the start; a discovery pays back what it cost."""
    assert not discoveries(np.full(1000, 0.9)).any()
    gamma = (
        0.07720838
        * np.log(np.maximum(np.arange(1, 4), 2))
        / (np.arange(1, 4) * np.exp(np.sqrt(np.log(np.arange(1, 4)))))
    )
    first = gamma[0] * 0.025
    assert discoveries(np.array([first]))[0]
    assert not discoveries(np.array([first * 1.01]))[0]
    second = gamma[1] * 0.025 + gamma[0] * 0.025  # what is left of the start, and what the first discovery pays
    assert discoveries(np.array([0.0, second * 0.99])).all()
    assert not discoveries(np.array([0.0, second * 1.01]))[1]


def test_the_referee_keeps_its_error_where_greed_does_not():
    """400 loops of a hundred changes without effect; a binomial bound of 3 standard errors."""
    bound = 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
    for world in ("normal noise", "proposals with thrice the noise", "near misses proposed again"):
        assert measured("referee", world, 0.0, 0.0, 400)["any false"] <= bound
    assert measured("greedy", "normal noise", 0.0, 0.0, 400)["any false"] > 0.9
