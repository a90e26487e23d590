"""Claims and their verdicts, case by case."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ablab.statistics.diverged import DIVERGED, compare_ranks, compare_shares
from ablab.statistics.interval import NotTestable
from ablab.statistics.paired import of_differences
from ablab.statistics.verdict import Case, Failures, so_far, verdicts
from ablab.statistics.verdict import tests_of_differences as both_sides

SHAPE = np.array([-1.0, 1.0, 0.5, -0.5, 0.0])
SHAPE /= SHAPE.std(ddof=1) / 5**0.5


def around(mean, error=0.1):
    """Five differences with this mean and standard error; t(0.975, 4) = 2.776, t(0.95, 4) = 2.132."""
    return mean + error * SHAPE


def verdict(expect, margin, evidence):
    (only,) = verdicts([Case(expect, margin, evidence)])
    return only


CASES = [
    ("greater", 0.0, 0.28, "supported"),
    ("greater", 0.0, 0.27, "inconclusive"),
    ("greater", 0.0, -0.28, "refuted"),
    ("greater", 0.4, 0.28, "supported"),
    ("greater", 0.5, 0.28, "real, but smaller than matters"),
    ("greater", 0.5, -0.28, "refuted"),
    ("greater", 0.5, 0.27, "equivalent"),
    ("greater", 0.5, -0.27, "equivalent"),
    ("greater", 0.4, 0.2, "inconclusive"),
    ("equal", 0.5, 0.28, "supported"),
    ("equal", 0.5, 0.3, "inconclusive"),
    ("equal", 0.5, 0.78, "refuted"),
    ("equal", 0.5, -0.78, "refuted"),
    ("equal", 0.5, 0.77, "inconclusive"),
    ("equal", 0.0, 0.0, "inconclusive"),
    ("equal", 0.0, 0.28, "refuted"),
]


@pytest.mark.parametrize(("expect", "margin", "mean", "outcome"), CASES)
def test_outcome_of_a_single_claim(expect, margin, mean, outcome):
    """Against the table: the 95 % interval is +- 0.278, the 90 % interval +- 0.213."""
    assert verdict(expect, margin, around(mean)).outcome == outcome


@pytest.mark.parametrize(("expect", "margin", "mean", "outcome"), CASES)
def test_less_mirrors_greater(expect, margin, mean, outcome):
    mirrored = {"greater": "less", "equal": "equal"}[expect]
    one, other = verdict(expect, margin, around(mean)), verdict(mirrored, margin, -around(mean))
    assert other.outcome == outcome
    assert (other.difference, other.corrected) == pytest.approx((-one.difference, one.corrected))
    assert other.interval.low == pytest.approx(-one.interval.high)


@pytest.mark.parametrize(("expect", "margin", "mean", "outcome"), CASES)
@pytest.mark.parametrize("others", [1, 4])
def test_the_intervals_say_the_same(expect, margin, mean, outcome, others):
    """However many claims there are, the verdict can be read from the Holm interval and from the narrow one."""
    rest = [Case("greater", 0.0, around(9.0 if i % 2 else 0.0)) for i in range(others)]
    result = verdicts([Case(expect, margin, around(mean)), *rest])[0]
    assert result.narrow.level == pytest.approx(2 * result.interval.level - 1)
    if expect == "equal":
        beyond = result.interval.low > margin or result.interval.high < -margin
        assert (result.outcome == "refuted") == beyond
        assert (result.outcome == "supported") == result.narrow.within(margin)
    else:
        assert (result.outcome in ("supported", "real, but smaller than matters")) == (result.interval.low > 0)
        assert (result.outcome == "refuted") == (result.interval.high < 0)
        assert result.small == result.narrow.within(margin)
    assert result.simultaneous.level == pytest.approx(1 - 0.05 / (1 + others))


ONE_SIDED = [
    (-0.28, "supported"),
    (-0.29, "inconclusive"),
    (-0.71, "inconclusive"),
    (-0.72, "refuted"),
    (9.0, "supported"),
]


@pytest.mark.parametrize(("mean", "outcome"), ONE_SIDED)
@pytest.mark.parametrize(("expect", "sign"), [("not_less", 1), ("not_greater", -1)])
def test_not_less_is_a_one_sided_test_against_the_margin(expect, sign, mean, outcome):
    """Against the table: the 90 % interval is +- 0.213, and the margin 0.5."""
    result = verdict(expect, 0.5, sign * around(mean))
    assert result.outcome == outcome
    bound = -result.narrow.high if sign < 0 else result.narrow.low
    assert (outcome == "supported") == (bound > -0.5)
    assert result.decided_by == result.narrow


def test_not_less_has_the_p_of_scipys_one_sided_test():
    differences = around(-0.3)
    expected = stats.ttest_1samp(differences, -0.5, alternative="greater").pvalue
    assert verdict("not_less", 0.5, differences).corrected == pytest.approx(expected)


@pytest.mark.parametrize(("failed", "outcome"), [((5, 0), "refuted"), ((0, 5), "supported"), ((3, 3), "inconclusive")])
def test_an_arm_that_fails_less_often_is_not_worse(failed, outcome):
    shares = compare_shares((failed[0], 5), (failed[1], 5))
    found = verdict("not_less", 0.5, Failures(shares, higher_is_better=True))
    assert (found.outcome, found.corrected) == (outcome, pytest.approx(shares.p))
    assert verdict("not_greater", 0.5, Failures(shares, higher_is_better=False)).outcome == outcome


def test_numbers_of_a_verdict_by_hand():
    result = verdict("greater", 0.0, around(0.3))
    assert (result.n, result.p) == (5, result.corrected)
    assert result.interval.level == 0.95
    assert result.interval.low == pytest.approx(0.3 - 0.1 * 2.776445, abs=1e-6)


def test_what_is_awaited_has_its_own_interval_so_far():
    scores = [0.3, -0.1, 0.4, 0.2]
    found = so_far(Case("greater", 0.5, scores))
    assert (found.outcome, found.n) == ("provisional", 4)
    assert found.difference == pytest.approx(0.2)
    interval = stats.t.interval(0.95, 3, np.mean(scores), stats.sem(scores))
    assert (found.interval.low, found.interval.high) == pytest.approx(interval)


def test_more_claims_make_it_harder():
    alone = verdict("greater", 0.0, around(0.3))
    crowd = verdicts([Case("greater", 0.0, around(0.3)), Case("greater", 0.0, around(0.0))])[0]
    assert (alone.outcome, crowd.outcome) == ("supported", "inconclusive")
    assert crowd.corrected == pytest.approx(2 * alone.p)


@pytest.mark.parametrize(
    ("expect", "margin", "mean", "settled"),
    [
        ("greater", 9.0, 0.1, False),  # equivalent, and perhaps different
        ("greater", 5.0, 5.0, False),  # different, and perhaps within the margin
        ("greater", 9.0, 3.0, True),  # different and within
        ("less", 1.0, 9.0, True),  # different and beyond
        ("greater", 0.0, 9.0, True),
        ("equal", 9.0, 0.1, True),
        ("equal", 1.0, 9.0, True),
        ("equal", 9.0, 9.0, False),
    ],
)
def test_only_a_claim_that_leaves_nothing_to_decide_passes_its_share_on(expect, margin, mean, settled):
    other = verdicts([Case(expect, margin, around(mean)), Case("greater", 0.0, around(0.1))])[1]
    assert other.local == pytest.approx(0.05 if settled else 0.025)


def test_refuted_though_too_small_to_matter_says_both():
    result = verdict("greater", 0.6, around(-0.3))
    assert (result.outcome, result.small) == ("refuted", True)


@pytest.mark.parametrize(
    ("evidence", "n", "missing"),
    [
        (NotTestable("arm a is under-trained"), 0, "under-trained"),
        ([0.3, 0.4], 2, "at least 3"),
        ([], 0, "2 seeds"),
        ([0.5, 0.5, 0.5], 3, "not so regular"),
    ],
)
def test_not_testable_names_what_is_missing(evidence, n, missing):
    result = verdict("greater", 0.3, evidence)
    assert (result.outcome, result.n, result.interval) == ("not testable", n, None)
    assert missing in result.reason


def test_what_cannot_be_tested_stays_in_the_family():
    result = verdicts([Case("greater", 0.0, around(0.3)), Case("greater", 0.0, NotTestable("no runs"))])[0]
    assert result.outcome == "inconclusive"


@pytest.mark.parametrize(
    ("expect", "higher_is_better", "outcome"),
    [
        ("greater", True, "supported"),
        ("less", True, "refuted"),
        ("less", False, "supported"),
        ("greater", False, "refuted"),
        ("equal", True, "refuted"),
    ],
)
def test_an_arm_that_diverges_less_is_the_better_one(expect, higher_is_better, outcome):
    result = verdict(expect, 0.3, Failures(compare_shares((0, 5), (5, 5)), higher_is_better))
    assert (result.outcome, result.difference, result.interval) == (outcome, -1.0, None)
    assert result.p < 0.05


def test_equal_shares_of_failures_decide_nothing():
    for expect in ("greater", "less", "equal"):
        assert verdict(expect, 0.3, Failures(compare_shares((2, 5), (2, 5)), True)).outcome == "inconclusive"


def ranked(expect, margin, arm, baseline):
    return verdict(expect, margin, Failures(compare_ranks(arm, baseline, margin), higher_is_better=True))


HIGH, LOW = [30.0, 31.0, 32.0, 33.0, 34.0], [10.0, 11.0, 12.0, 13.0, DIVERGED]


@pytest.mark.parametrize(
    ("expect", "margin", "outcome", "large"),
    [
        ("greater", 0.0, "supported", False),
        ("greater", 5.0, "supported", True),
        ("greater", 20.0, "supported", False),
        ("less", 5.0, "refuted", True),
        ("equal", 0.0, "refuted", False),
        ("equal", 5.0, "refuted", True),
        ("equal", 20.0, "inconclusive", False),
        ("equal", 99.0, "inconclusive", False),
    ],
)
def test_ranks_judge_with_the_margin_taken_off_and_never_find_two_arms_equal(expect, margin, outcome, large):
    result = ranked(expect, margin, HIGH, LOW)
    assert (result.outcome, result.large, result.interval, result.n) == (outcome, large, None, 5)
    assert result.difference == 1.0


@pytest.mark.parametrize(
    ("arm", "margin", "outcome"),
    [("HIGH", 0.5, "supported"), ("LEVEL", 1.0, "supported"), ("LEVEL", 0.3, "inconclusive"), ("LOW", 5.0, "refuted")],
)
def test_ranks_judge_that_an_arm_is_not_worse_with_the_margin_added(arm, margin, outcome):
    arms = {"HIGH": HIGH, "LOW": LOW, "LEVEL": [10.1, 10.0, 10.2, 10.3, 10.4]}
    baseline = [10.5, 10.6, 10.7, 10.8, DIVERGED] if arm != "LOW" else HIGH
    found = compare_ranks(arms[arm], baseline, margin)
    result = verdict("not_less", margin, Failures(found, higher_is_better=True))
    assert result.outcome == outcome
    assert verdict("not_greater", margin, Failures(found, higher_is_better=False)).outcome == outcome
    assert result.corrected == pytest.approx(min(found.beyond, found.kept))


def test_an_arm_worse_by_the_margin_is_rarely_called_not_worse_by_ranks():
    rng, times, false = np.random.default_rng(7), 1000, 0
    for _ in range(times):
        arm, baseline = (np.where(rng.random(6) < 0.2, DIVERGED, rng.normal(mean, 1, 6)) for mean in (-1, 0))
        found = Failures(compare_ranks(arm, baseline, 1.0), higher_is_better=True)
        false += verdict("not_less", 1.0, found).outcome == "supported"
    assert false / times <= 0.025 + 3 * (0.025 * 0.975 / times) ** 0.5


def test_ranks_in_a_loss_mirror_those_in_a_score():
    found = compare_ranks(HIGH, LOW)
    assert verdict("less", 0.0, Failures(found, higher_is_better=False)).outcome == "supported"


def test_ranks_pass_their_share_on_once_nothing_is_left_to_decide():
    other = Case("greater", 0.0, around(0.1))
    for margin, local in ((5.0, 0.05), (20.0, 0.025)):
        case = Case("greater", margin, Failures(compare_ranks(HIGH, LOW, margin), higher_is_better=True))
        assert verdicts([case, other])[1].local == pytest.approx(local)


@pytest.mark.parametrize(("mean", "large"), [(0.6, False), (0.77, False), (0.79, True), (-0.79, True)])
def test_a_difference_is_said_to_exceed_the_margin_where_its_interval_does(mean, large):
    """The 95 % interval is +- 0.278."""
    for expect in ("greater", "less", "equal"):
        result = verdict(expect, 0.5, around(mean))
        assert result.large == large
        assert (result.interval.low > 0.5 or result.interval.high < -0.5) == large
    assert not verdict("greater", 0.0, around(mean)).large


def test_shares_of_failures_have_no_margin():
    assert not verdict("greater", 0.1, Failures(compare_shares((0, 5), (5, 5)), True)).large


def test_no_claims_no_verdicts():
    assert verdicts([]) == []


@pytest.mark.parametrize("margin", [-0.1, float("nan")])
def test_a_margin_is_a_size(margin):
    with pytest.raises(ValueError, match="margin"):
        verdict("greater", margin, around(1))


def test_a_side_is_named_falsely_in_at_most_five_percent_of_families():
    """Four true claims of *equal* without any difference: the level that Holm leaves would name one in 8 %."""
    rng, studies, named = np.random.default_rng(1), 1500, 0
    for _ in range(studies):
        arms = rng.standard_normal((5, 10))
        found = verdicts([Case("equal", 2.0, arm - arms[0]) for arm in arms[1:]])
        named += any(one.outcome == "supported" and one.different for one in found)
    assert named / studies < 0.05


@pytest.mark.parametrize(("size", "within", "beyond"), [(0.9, True, False), (1.0, False, False), (1.1, False, True)])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_difference_speaks_for_the_side_of_the_margin_on_which_it_lies_alone(size, within, beyond, sign):
    """One as large as the margin for neither: both tests of it have p = 1."""
    found = of_differences(sign * size + np.array([-0.1, 0.0, 0.1]))
    tests = both_sides(replace(found, difference=sign * size), "greater", 1.0)
    assert (tests.outside < 0.5, tests.inside < 1.0) == (within, beyond)
    assert tests.outside == 1.0 or within
    assert tests.sign == sign
