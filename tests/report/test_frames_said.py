"""What is said of frames that are unusual: negative losses, names of other programs, holes, ranks and coarse scores."""

import pytest

from ablab.api.judging import judge_frame
from ablab.errors import UserError
from ablab.report.latex import column_table
from ablab.report.names import named
from ablab.report.plain_words import plain_words
from ablab.report.tables import with_unit
from ablab.report.text import markdown


def rows(arms, metric="acc"):
    return [
        {"arm": arm, "seed": seed, "metric": metric, "value": value}
        for arm, values in arms.items()
        for seed, value in enumerate(values, 1)
        if value is not None
    ]


def document(arms, metric="acc", **named):
    return judge_frame(rows(arms, metric), metric, **named).document


NEAR = {"base": [30.1, 31.3, 33.2, 30.9], "a": [25.2, 25.9, 26.1, 26.5]}


def test_the_interval_of_a_mean_ends_where_no_table_said_that_scores_do():
    lines = document({"base": [-1.30, -1.21, -1.25], "a": [-1.50, -1.52, -1.47]}, "test_loss").arms
    assert all(line.interval.low < line.mean < line.interval.high for line in lines)


@pytest.mark.parametrize(("metric", "unit"), [("test_accuracy", "%"), ("valid_accuracy", "%"), ("test_loss", "")])
def test_a_metric_of_another_program_keeps_its_name(metric, unit):
    found = document(NEAR, metric)
    assert (found.title, found.unit) == (metric, unit)


@pytest.mark.parametrize(
    ("unit", "said"), [("ms", "1 ms"), ("s", "1 s"), ("fps", "1 fps"), ("hours", "1 hour"), ("loss", "1 loss")]
)
def test_a_margin_of_one_keeps_its_unit(unit, said):
    claims = [{"arm": "a", "expect": "greater", "margin": 1}]
    (claim,) = document({"base": NEAR["a"], "a": NEAR["base"]}, claims=claims).claims
    assert f"by at least {said}." in plain_words(claim.model_copy(update={"unit": unit}), "acc")


def test_a_run_without_the_metric_is_not_counted():
    both = [
        *rows({"base": [30.1, 31.3, 33.2], "a": [25.2, 25.9, None]}, "x"),
        *rows({"base": [1, 2, 3], "a": [2, 3, 5]}, "y"),
    ]
    found = judge_frame(both, "x").document
    line = next(one for one in found.arms if one.name == "a")
    assert (line.counted, line.finished, line.planned) == (2, 3, 3)
    assert "| 2 of 3 |" in markdown(named(found))
    assert "over n seeds" in column_table(named(found))


def test_ranks_of_unequal_arms_say_so():
    arms = {"base": [50.1, 50.3, 50.2, 50.6, 50.4], "a": [51.1, 51.3, 51.2, 51.6, 51.4, "diverged"]}
    claims = [{"arm": "a", "expect": "greater"}]
    (claim,) = document(arms, claims=claims).claims
    assert claim.words.endswith("at least 5 runs an arm.")
    (claim,) = document({**arms, "base": [*arms["base"], 50.5]}, claims=claims).claims
    assert claim.words.endswith(", 6 runs an arm.")


def test_a_difference_that_is_the_margin_is_a_tie_of_ranks():
    """0.8 - 0.1 is more than 0.7 in floating point, and 0.2 + 0.1 more than 0.3."""
    ahead = document(
        {"base": [0.7] * 5 + ["diverged"], "a": [0.8] * 6}, claims=[{"arm": "a", "expect": "greater", "margin": 0.1}]
    )
    assert (ahead.claims[0].outcome, ahead.claims[0].large) == ("supported", False)
    behind = document(
        {"base": [0.3] * 7, "a": [0.2] * 6 + ["diverged"]}, claims=[{"arm": "a", "expect": "not_worse", "margin": 0.1}]
    )
    assert behind.claims[0].outcome == "inconclusive"


@pytest.mark.parametrize("metric", ["share of failures", "ranks of all runs"])
def test_names_of_what_diverged_runs_are_compared_by_are_no_metrics(metric):
    with pytest.raises(UserError, match="is what arms with diverged runs are compared by; allowed: another name"):
        document(NEAR, metric, better="lower")


def test_a_single_claim_of_equivalence_was_not_corrected():
    arms = {"base": [30.1, 31.3, 33.2, 30.9], "a": [31.2, 30.9, 32.1, 31.5]}
    page = markdown(named(document(arms, claims=[{"arm": "a", "expect": "equal", "margin": 5}])))
    assert "two-sided; the claim's interval is that of one-sided tests" in page
    assert "not corrected for other claims" not in page


def test_an_item_that_is_missing_is_none():
    pandas = pytest.importorskip("pandas")
    by_item = [
        {"arm": arm, "seed": seed, "metric": "acc", "item": item, "value": seed + item + (arm == "a")}
        for arm in ("base", "a")
        for seed in (1, 2, 3)
        for item in (1, 2)
    ]
    whole = rows({"base": [30.1, 31.3, 33.2], "a": [35.2, 35.9, 37.1]}, "bleu")
    frame = pandas.concat([pandas.DataFrame(by_item), pandas.DataFrame(whole)])
    found = judge_frame(frame, "bleu").document
    assert all(line.crossed_refused is None and line.randomisation_refused is None for line in found.differences)
    mixed = pandas.concat([frame, pandas.DataFrame(rows({"a": [1.0]}, "acc"))])
    with pytest.raises(UserError, match="item is empty"):
        judge_frame(mixed, "bleu")


@pytest.mark.parametrize(
    ("about", "unit", "said"),
    [
        ("latency of 100 requests", "s", "latency of 100 requests (s)"),
        ("test BLEU", "BLEU", "test BLEU"),
        ("x", "", "x"),
    ],
)
def test_a_title_that_ends_in_its_unit_does_not_name_it_twice(about, unit, said):
    assert with_unit(about, unit) == said


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_level_that_is_missing_is_no_reason_to_pool_two_conditions(missing):
    """Whichever way the frame writes it; seeds that differ would hide that two runs are of one arm."""
    frame = [
        {"norm": norm, "layers": layers, "seed": seed, "acc": 30.0 + seed / 10}
        for norm, layers, seeds in (("pre", 6.0, (1, 2)), ("pre", missing, (3, 4)), ("post", 6.0, (5, 6)))
        for seed in seeds
    ]
    with pytest.raises(UserError, match="layers"):
        judge_frame(frame, "acc", better="higher")
