"""Claims that are looked at after every seed: verdicts at the stop, and what is said on the way."""

import numpy as np
import pytest

from ablab.statistics.diverged import compare_shares
from ablab.statistics.interval import NotTestable
from ablab.statistics.looks import Looks
from ablab.statistics.moderated import moderated
from ablab.statistics.paired import of_differences
from ablab.statistics.sequential import Boundary, Watched, chance_of_a_verdict, follow, follow_watched
from ablab.statistics.verdict import Case, Failures
from benchmarks.calibration.sequential import single, studies

LOOKS = Looks(3, 12)
EXPECTED = ("greater", "less", "equal", "not_less", "not_greater")


def drawn(effect, seeds=12, seed=0):
    return effect + np.random.default_rng(seed).standard_normal(seeds)


def followed(expect, values, margin=0.0, looks=LOOKS):
    (found,) = follow([Case(expect, margin, values)], looks)
    return found


def test_a_large_difference_settles_early_and_later_seeds_change_nothing():
    values = drawn(5.0)
    found = followed("greater", values)
    assert (found.state, found.verdict.outcome) == ("settled", "supported")
    n = found.verdict.n
    assert n < 8
    for seeds in range(n, 12):
        again = followed("greater", values[:seeds])
        assert again.verdict == found.verdict
        assert again.looks == found.looks
    assert followed("greater", values[: n - 1]).state == "open"


@pytest.mark.parametrize("expect", EXPECTED)
@pytest.mark.parametrize("effect", [-3.0, -1.0, 0.0, 1.0, 3.0])
def test_a_verdict_says_what_its_interval_says(expect, effect):
    """Rejecting by p and by the repeated interval are one test."""
    for seed in range(20):
        found = followed(expect, drawn(effect, seed=seed), margin=1.0)
        verdict = found.verdict
        wide, narrow = verdict.interval, verdict.narrow
        settled = {
            "greater": wide.excludes(0) or narrow.within(1),
            "less": wide.excludes(0) or narrow.within(1),
            "equal": narrow.within(1) or wide.low > 1 or wide.high < -1,
            "not_less": narrow.low > -1 or narrow.high < -1,
            "not_greater": narrow.high < 1 or narrow.low > 1,
        }[expect]
        assert settled == (found.state == "settled") == (verdict.outcome != "inconclusive")
        if settled and verdict.outcome != "equivalent":  # whose p is of no difference
            assert verdict.corrected <= 0.05
        if expect == "greater" and verdict.outcome == "supported":
            assert wide.low > 0
        if expect == "not_less" and verdict.outcome == "supported":
            assert narrow.low > -1


def test_intervals_say_their_levels():
    """Two-sided at the whole error, and so wide that each end is one-sided at it."""
    verdict = followed("not_less", drawn(0.0), margin=1.0).verdict
    assert (verdict.interval.level, verdict.narrow.level) == (pytest.approx(0.95), pytest.approx(0.90))


@pytest.mark.parametrize(
    ("expect", "margin", "level"),
    [("greater", 1.0, 0.95), ("equal", 0.0, 0.95), ("equal", 1.0, 0.9), ("not_less", 0.0, 0.9)],
)
def test_a_look_shows_the_interval_that_decides(expect, margin, level):
    assert followed(expect, drawn(0.0), margin=margin).looks[0].interval.level == pytest.approx(level)


@pytest.mark.parametrize(("expect", "other"), [("greater", "less"), ("not_less", "not_greater"), ("equal", "equal")])
def test_claims_are_mirrored(expect, other):
    for seed in range(20):
        values = drawn(1.0, seed=seed)
        one, two = followed(expect, values, 0.5), followed(other, -values, 0.5)
        assert (one.state, one.verdict.outcome, one.verdict.n) == (two.state, two.verdict.outcome, two.verdict.n)


def test_units_do_not_matter():
    for seed in range(10):
        values = drawn(1.0, seed=seed)
        one, two = followed("greater", values, 1.0), followed("greater", 100 * values, 100.0)
        assert (one.state, one.verdict.n) == (two.state, two.verdict.n)
        assert one.verdict.corrected == pytest.approx(two.verdict.corrected)


def test_each_claim_has_its_share_of_the_error():
    values = drawn(2.0, seed=3)
    (alone,) = follow([Case("greater", 0.0, values)], LOOKS)
    four = follow([Case("greater", 0.0, values)] * 4, LOOKS)
    assert all(one.verdict.n > alone.verdict.n for one in four)
    assert four[0].looks[0].interval.level == pytest.approx(1 - 0.05 / 4)


def test_the_last_look_ends_it():
    found = followed("greater", drawn(0.0, seed=1))
    assert (found.state, found.verdict.outcome, found.verdict.n) == ("spent", "inconclusive", 12)
    assert [look.n for look in found.looks] == list(range(3, 13))


def test_seeds_after_the_last_look_are_left_out():
    values = drawn(0.0, seeds=20, seed=1)
    assert followed("greater", values).verdict == followed("greater", values[:12]).verdict


def test_before_the_first_look_there_is_none():
    found = followed("greater", [9.0, 9.1])
    assert (found.state, found.looks, found.verdict.outcome) == ("open", (), "provisional")
    assert found.verdict.difference is None


def test_differences_without_noise_wait_for_some():
    found = followed("greater", [1.0, 1.0, 1.0])
    assert found.state == "open"
    later = followed("greater", [1.0, 1.0, 1.0, 1.1])
    assert [look.n for look in later.looks] == [4]


def test_the_chance_of_a_verdict_is_that_of_simulated_futures():
    """Under a prior that is flat in the mean and in the log of the noise; paths whose first seeds look alike."""
    boundary, rng = Boundary(Looks(3, 8), 0.05, "greater", 0.0), np.random.default_rng(0)
    effect = rng.uniform(-8, 8, 400_000)
    first = effect[:, None] + rng.standard_normal((400_000, 3))
    sd = first.std(axis=1, ddof=1)
    like = np.abs(first.mean(axis=1) / sd - 1.5) < 0.05
    whole = np.concatenate([first[like], effect[like, None] + rng.standard_normal((like.sum(), 5))], axis=1)
    done = np.zeros(like.sum(), dtype=bool)
    for n in range(4, 9):
        done |= boundary.settled(whole[:, :n].mean(axis=1), whole[:, :n].std(axis=1, ddof=1), n)
    weights = 1 / sd[like]
    expected = (done * weights).sum() / weights.sum()
    found = of_differences(np.array([0.5, 1.5, 2.5]))
    assert chance_of_a_verdict(boundary, found) == pytest.approx(expected, abs=0.03)


def test_estimates_at_an_early_stop_are_too_large():
    early = followed("greater", drawn(1.5, seed=2))
    assert early.state == "settled"
    assert early.bias > 0
    assert followed("less", -drawn(1.5, seed=2)).bias == pytest.approx(-early.bias, rel=0.3)


def test_what_cannot_be_tested_asks_for_no_seeds_and_keeps_its_share():
    values = drawn(2.0, seed=3)
    odd, usual = follow([Case("greater", 0.0, NotTestable("why")), Case("greater", 0.0, values)], LOOKS)
    assert (odd.state, odd.verdict.outcome, odd.verdict.reason) == ("hopeless", "not testable", "why")
    assert usual.looks[0].interval.level == pytest.approx(0.975)


def test_runs_that_diverged_are_judged_once_at_the_last_look():
    def judged(failed, runs, last):
        shares = compare_shares((failed, runs), (0, runs))
        (found,) = follow([Case("less", 0.0, Failures(shares, True))], Looks(3, last))
        return found.state, found.verdict.outcome

    assert judged(5, 5, 12) == ("open", "provisional")
    assert judged(12, 12, 12) == ("settled", "supported")
    assert judged(1, 12, 12) == ("spent", "inconclusive")
    (found,) = follow([Case("not_less", 0.5, Failures(compare_shares((0, 12), (12, 12)), True))], Looks(3, 12))
    assert (found.state, found.verdict.outcome) == ("settled", "supported")


def test_a_look_sees_the_evidence_of_its_seeds_alone():
    """Also where later seeds leave no evidence: what was settled stands."""

    def of(values):
        def at(seeds):
            return values[:seeds] if seeds < 9 else NotTestable("later")

        (found,) = follow_watched([Watched("greater", 0.0, 12, at)], LOOKS)
        return found

    found = of(drawn(5.0))
    assert found == followed("greater", drawn(5.0))
    assert found.seeds == found.verdict.n
    late = of(drawn(0.0, seed=1))
    assert (late.state, late.verdict.outcome, late.verdict.reason) == ("hopeless", "not testable", "later")


def test_seeds_without_a_difference_count_towards_the_last_look():
    """As those under which a run diverged, of a claim about speed."""
    values = drawn(0.0, seed=1)

    def of(seeds):
        (found,) = follow_watched([Watched("greater", 0.0, seeds, lambda n: values[: n - 1 - (n > 6)])], LOOKS)
        return found

    assert of(3).verdict.reason == "the first look comes at 3 seeds that have a score in both arms, not 2"
    found = of(12)
    assert [look.n for look in found.looks] == list(range(3, 11))
    assert (found.state, found.verdict.outcome, found.seeds) == ("spent", "inconclusive", 12)


def test_without_noise_to_the_end_nothing_can_be_tested():
    found = followed("greater", [0.0] * 12)
    assert (found.state, found.verdict.outcome) == ("hopeless", "not testable")
    assert "first look" not in found.verdict.reason


def test_borrowed_noise_is_refused():
    evidence = moderated([1.0, 2.0, 3.0], [0.0, 0.1, 0.2])
    with pytest.raises(TypeError, match="paired by seed"):
        follow([Case("greater", 0.0, evidence)], LOOKS)


def test_any_verdict_of_a_study_is_false_at_most_one_time_in_twenty():
    (job,) = (job for job in studies() if job.scenario == "7 claims of all kinds" and job.n == 6)
    rng = np.random.default_rng(0)
    rate = np.mean([job.once(rng)["looks after every seed"] for _ in range(400)])
    assert rate <= 0.05 + 4 * (0.05 * 0.95 / 400) ** 0.5


def test_a_large_effect_needs_half_the_seeds_of_the_fixed_design():
    found = single(10, 1, 2.0, 20_000)
    assert found["settled"] > 0.99
    assert found["mean seeds"] < 6
    assert single(10, 1, 0.0, 20_000)["looking without boundaries"] > 0.12


def test_the_look_that_settles_a_claim_has_the_interval_of_its_verdict():
    rng = np.random.default_rng(3)
    for expect, margin, mean in (
        ("greater", 3.0, 1.2),
        ("equal", 1.0, 4.0),
        ("equal", 3.0, 0.1),
        ("greater", 0.0, 4.0),
    ):
        followed, *_ = follow([Case(expect, margin, mean + rng.normal(0, 0.5, 8))], Looks(3, 8))
        assert followed.state == "settled"
        assert followed.looks[-1].interval == followed.verdict.decided_by


def test_shares_of_failures_lie_beyond_no_margin():
    (followed,) = follow([Case("greater", 0.5, Failures(compare_shares((0, 4), (4, 4)), True))], Looks(3, 4))
    assert not followed.verdict.large
