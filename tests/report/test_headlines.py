"""Headlines, badges and sentences of a claim say of its difference what its interval shows, and nothing else."""

import re
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablab.judge.failures import RANK, SHARE
from ablab.judge.lines import ClaimLine, Span
from ablab.report.claim_words import with_words
from ablab.report.plain_words import plain_words
from ablab.statistics.diverged import DIVERGED, compare_ranks, compare_shares
from ablab.statistics.interval import NotTestable
from ablab.statistics.looks import Looks
from ablab.statistics.sequential import follow
from ablab.statistics.verdict import Case, Failures, Verdict, verdicts
from tests.report.test_plain_words import claim

EXPECT = ("greater", "less", "equal", "not_worse")
NEARLY = 1e-9


def line_of(verdict: Verdict, expect: str, margin: float, *, higher_is_better: bool = True) -> ClaimLine:
    """The line that the judge makes of a verdict on arms `a` and `b`, with its words."""
    interval = verdict.decided_by
    line = claim(
        **{"arm": "a", "baseline": "b", "expect": expect, "margin": margin, "higher_is_better": higher_is_better},
        **{"outcome": verdict.outcome, "n": verdict.n, "difference": verdict.difference, "p": verdict.p},
        **{"corrected": verdict.corrected, "interval": Span.of(interval) if interval else None},
        **{"different": verdict.different, "small": verdict.small, "large": verdict.large},
    )
    return with_words([line])[0]


def asked(expect: str, *, higher_is_better: bool) -> str:
    return {True: "not_less", False: "not_greater"}[higher_is_better] if expect == "not_worse" else expect


def values(mean: float, sd: float) -> list[float]:
    return [mean + sd * z for z in (-1.2, -0.4, 0.4, 1.2)]


SIDE = r"a is (?P<side>better|worse) than b"
SAYS = {
    rf"{SIDE}": lambda m: (0.0, inf),
    rf"{SIDE} by at least (?P<m>[\d.]+) BLEU": lambda m: (m, inf),
    rf"{SIDE} by (?P<m>[\d.]+) BLEU or more": lambda m: (m, inf),
    rf"{SIDE}, but by less than (?P<m>[\d.]+) BLEU": lambda m: (0.0, m),
    rf"If {SIDE}, then by less than (?P<m>[\d.]+) BLEU": lambda m: (-inf, m),
    r"a and b differ by less than (?P<m>[\d.]+) BLEU": lambda m: (-m, m),
}
OPEN = r"These seeds cannot tell whether "


def read(headline: str, *, higher_is_better: bool) -> tuple[float, float]:
    """What a reader takes from a headline: the range in which the difference a - b lies."""
    for pattern, range_ in SAYS.items():
        if found := re.fullmatch(rf"(?:{OPEN})?{pattern}\.", headline, flags=re.IGNORECASE):
            low, high = range_(float(found["m"]) if "m" in found.groupdict() else 0.0)
            is_up = (found.groupdict().get("side", "better") == "better") == higher_is_better
            return (low, high) if is_up or (low, high) == (-high, -low) else (-high, -low)
    raise AssertionError(headline)


BADGES = {
    "within the margin": lambda m: (-m, m),
    "above 0 by less than the margin": lambda m: (0.0, m),
    "below 0 by less than the margin": lambda m: (-m, 0.0),
    "above the margin": lambda m: (m, inf),
    "below 0 by more than the margin": lambda m: (-inf, -m),
    "above 0": lambda m: (0.0, inf),
    "below 0": lambda m: (-inf, 0.0),
    "above 0, not shown to exceed the margin": lambda m: (0.0, inf),
    "below 0, not shown to exceed the margin": lambda m: (-inf, 0.0),
    "if below 0, then by less than the margin": lambda m: (-m, inf),
    "if above 0, then by less than the margin": lambda m: (-inf, m),
}


def check(line: ClaimLine, different: bool) -> None:
    """The laws, of a claim that was judged by an interval."""
    headline, span, up = plain_words(line, "test_bleu"), line.interval, line.higher_is_better
    if line.outcome == "inconclusive":
        assert headline.startswith(OPEN)
        if line.expect == "equal" and not line.margin:
            assert headline == f"{OPEN}a and b differ."
            assert span.low <= NEARLY
            assert span.high >= -NEARLY
            return
        low, high = read(headline, higher_is_better=up)
        assert span.low < low + NEARLY or span.high > high - NEARLY, (headline, span)  # it may be untrue
        assert span.low < high + NEARLY, (headline, span)  # and true
        assert span.high > low - NEARLY, (headline, span)
        return
    low, high = read(headline, higher_is_better=up)
    assert low - NEARLY <= span.low <= line.difference <= span.high <= high + NEARLY, (headline, span)
    assert not (different and low < 0 < high), (headline, span)
    if not line.margin:
        assert line.strength is None
        return
    assert BADGES[line.strength](line.margin) == (low, high), (headline, line.strength)
    assert not (line.expect == "not_worse" and "not shown" in line.strength)  # a one-sided test does not ask
    assert line.verdict == f"{line.outcome}, {line.strength}"
    verdict = line.verdict.capitalize().replace("the margin", f"the margin of {line.margin:g}")
    claim = f"The claim was: {line.claimed}. " if line.outcome == "refuted" else ""  # the headline says another thing
    assert line.judged.startswith(f"{verdict}. {claim}The difference is ")


worlds = {
    "expect": st.sampled_from(EXPECT),
    "higher_is_better": st.booleans(),
    "margin": st.sampled_from([0.0, 0.5, 1.0]),
    "mean": st.floats(-2, 2).filter(lambda mean: abs(mean) > 1e-3),
    "sd": st.floats(0.01, 1.5),
}


@settings(max_examples=600, deadline=None)
@given(**worlds, others=st.integers(0, 4))
def test_a_headline_says_what_the_interval_shows_and_nothing_that_it_excludes(
    expect, higher_is_better, margin, mean, sd, others
):
    about = asked(expect, higher_is_better=higher_is_better)
    family = [Case(about, margin, values(mean, sd)), *others * [Case("greater", 0.0, NotTestable("gone"))]]
    verdict = verdicts(family)[0]
    check(line_of(verdict, expect, margin, higher_is_better=higher_is_better), verdict.different)


@settings(max_examples=300, deadline=None)
@given(**worlds, seed=st.integers(0, 99))
def test_so_it_does_where_seeds_are_added(expect, higher_is_better, margin, mean, sd, seed):
    import numpy as np

    about = asked(expect, higher_is_better=higher_is_better)
    found = list(mean + sd * np.random.default_rng(seed).standard_normal(8))
    verdict = follow([Case(about, margin, found)], Looks(3, 8))[0].verdict
    check(line_of(verdict, expect, margin, higher_is_better=higher_is_better), verdict.different)


@settings(max_examples=200, deadline=None)
@given(
    expect=worlds["expect"],
    higher_is_better=st.booleans(),
    margin=worlds["margin"],
    arm=st.lists(st.sampled_from([DIVERGED, 1.0, 1.4, 1.8, 3.0, 5.0]), min_size=5, max_size=6),
    baseline=st.lists(st.sampled_from([DIVERGED, 1.1, 1.5, 1.9]), min_size=5, max_size=6),
    ranked=st.booleans(),
)
def test_so_it_does_where_runs_diverged(expect, higher_is_better, margin, arm, baseline, ranked):
    """Failures are for the worse, whichever way the metric goes."""
    counts = [(sum(one == DIVERGED for one in runs), len(runs)) for runs in (arm, baseline)]
    compared = compare_ranks(arm, baseline, margin) if ranked else compare_shares(*counts)
    case = Case(asked(expect, higher_is_better=higher_is_better), margin, Failures(compared, higher_is_better))
    line = line_of(verdicts([case])[0], expect, margin, higher_is_better=higher_is_better)
    measure = RANK if ranked else SHARE
    (line,) = with_words([line.model_copy(update={"title": measure.title, "unit": measure.unit})])
    headline = plain_words(line, "test_bleu")
    if line.outcome == "inconclusive":
        assert headline.startswith(("These seeds cannot tell whether ", "One seed cannot tell whether "))
        return
    if expect == "not_worse" and line.outcome == "supported" and ranked and margin:
        assert "If a is worse than b, then by less than the margin of" in headline
        assert line.strength == "with the margin added"
        return
    assert ("a is better than b" in headline, "a is worse than b" in headline) == (
        (compared.better > 0, compared.better < 0)
    )
    assert ("by at least the margin of" in headline) == (line.large and bool(margin) and ranked)
    assert headline.endswith(
        (", diverged runs ranked last.", ", by the share of runs that diverged.")[not ranked :][:1]
    )
    assert (line.strength is None) == (not margin or not ranked or expect in ("equal", "not_worse"))


def test_every_position_of_an_interval_has_its_own_words():
    """Of each expectation, the arm from far below the baseline to far above, in a metric of which more is better."""

    def said(expect, *means):
        cases = [Case(asked(expect, higher_is_better=True), 1.0, values(mean, 0.1)) for mean in means]
        return [plain_words(line_of(verdicts([case])[0], expect, 1.0), "test_bleu") for case in cases]

    worse, better = "a is worse than b by at least 1 BLEU.", "a is better than b by at least 1 BLEU."
    little_worse = "a is worse than b, but by less than 1 BLEU."
    little_better = "a is better than b, but by less than 1 BLEU."
    alike = "a and b differ by less than 1 BLEU."
    positions = (-3, -0.5, 0.02, 0.5, 3)
    for expect in ("greater", "less", "equal"):
        assert said(expect, *positions) == [worse, little_worse, alike, little_better, better]
    assert said("not_worse", *positions) == [
        *(worse, little_worse, "If a is worse than b, then by less than 1 BLEU.", "a is better than b."),
        "a is better than b.",
    ]
    assert said("greater", 1.0) == ["a is better than b."]
    assert said("greater", -1.0) == ["a is worse than b."]
    assert said("equal", 1.0) == ["These seeds cannot tell whether a and b differ by less than 1 BLEU."]
    assert said("not_worse", -1.0) == ["These seeds cannot tell whether a is worse than b by 1 BLEU or more."]


def test_an_arm_that_is_a_little_worse_is_never_called_as_good():
    """One difference, -0.198 with an interval from -0.226 to -0.170, under each expectation."""
    scattered = values(-0.198, 0.0215)
    for expect in EXPECT:
        line = line_of(verdicts([Case(asked(expect, higher_is_better=True), 0.25, scattered)])[0], expect, 0.25)
        assert plain_words(line, "test_bleu") == "a is worse than b, but by less than 0.25 BLEU."
        assert line.strength == "below 0 by less than the margin"


@pytest.mark.parametrize(
    ("expect", "mean", "said"),
    [
        ("greater", 3, "p of no difference "),
        ("greater", 0.02, "p of no difference "),
        ("equal", 0.1, "p of a difference of 1 or more "),
        ("equal", 3, "p of a difference within 1 "),
        ("equal", 1.01, "p of a difference within 1 = 0.9"),
        ("not_worse", 0.1, "p of being worse by 1 or more "),
        ("not_worse", -3, "p of being worse by less than 1, or better "),
    ],
)
def test_a_p_says_of_what_it_is(expect, mean, said):
    line = line_of(verdicts([Case(asked(expect, higher_is_better=True), 1.0, values(mean, 0.3))])[0], expect, 1.0)
    assert f", {said}" in line.words


def test_what_is_exploratory_says_so_first():
    (line,) = with_words([claim(exploratory="it came later", margin=0.0)])
    assert plain_words(line, "test_bleu") == "Exploratory: ScaleNorm is better than PreNorm."
    assert line.verdict == "exploratory: supported"
    assert line.words.startswith("Exploratory: norm=scalenorm above norm=pre in test BLEU: supported. ")
    assert line.judged.startswith("Supported. ")
