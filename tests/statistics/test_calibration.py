"""A small share of benchmarks/calibration, seeded: rates of error on simulated studies, to 4 standard errors."""

import json
import sys

import numpy as np
import pytest

from ablab.statistics.multiple import family
from ablab.statistics.verdict import Case, _judge
from benchmarks.calibration.__main__ import main
from benchmarks.calibration.choices import over_choices
from benchmarks.calibration.claims import over_claims
from benchmarks.calibration.effects import planted
from benchmarks.calibration.failures import over_failures
from benchmarks.calibration.nulls import over_seeds, over_sentences, over_sentences_alone
from benchmarks.calibration.rows import Row


def rates(make, scenario, n, repetitions):
    """Of each method."""
    (job,) = (job for job in make() if job.scenario == scenario and job.n == n)
    rng = np.random.default_rng(0)
    outcomes = [job.once(rng) for _ in range(repetitions)]
    return {method: np.mean([outcome[method] for outcome in outcomes]) for method in outcomes[0]}


def near(rate, expected, repetitions):
    return abs(rate - expected) <= 4 * (expected * (1 - expected) / repetitions) ** 0.5


@pytest.mark.parametrize("n", [3, 10])
def test_paired_t_rejects_a_true_null_one_time_in_twenty(n):
    assert near(rates(over_seeds, "normal seed noise", n, 2000)["paired t"], 0.05, 2000)


@pytest.mark.parametrize("n", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_crossed_bootstrap_rejects_a_true_null_one_time_in_twenty(n):
    """The paired test takes the test set as it is, and errs more often about others: with many seeds, visibly."""
    rate = rates(over_sentences, "arms differ by sentence, 200 sentences", n, 300)
    assert near(rate["crossed bootstrap"], 0.05, 300)
    if n == 10:
        assert rate["paired t"] > 2 * rate["crossed bootstrap"]


def test_randomisation_rejects_a_true_null_one_time_in_twenty():
    rate = rates(over_sentences_alone, "equally good runs", 1, 200)["approximate randomisation"]
    assert near(rate, 0.05, 200)


@pytest.mark.parametrize("name", ["10 claims, no difference, wide margins", "7 claims of all kinds"])
def test_any_verdict_of_a_study_is_false_at_most_one_time_in_twenty(name):
    rate = rates(over_claims, f"{name}, one baseline", 5, 400)["verdicts"]
    assert rate <= 0.05 + 4 * (0.05 * 0.95 / 400) ** 0.5


def test_arms_that_fail_alike_are_seldom_told_apart_and_a_better_one_is_found():
    """By their shares of failures it never would be, with one diverged run of five."""
    null = rates(over_failures, "both arms fail 20 % of the time", 5, 400)
    assert null["ranks"] <= 0.05 + 4 * (0.05 * 0.95 / 400) ** 0.5
    found = rates(over_failures, "one run of the baseline diverged, the arm is 20 sd better", 5, 50)
    assert found == {"ranks": 1.0, "shares of failures": 0.0}


def test_passing_shares_on_at_the_first_decision_would_not_do():
    """Ten arms like the baseline: each is soon equivalent, and none of them is different."""
    rng, careless, careful = np.random.default_rng(0), 0, 0
    for _ in range(200):
        tests = [_judge(Case("greater", 10.0, row))[1] for row in rng.normal(0, 1, (10, 5))]
        zero, outside, inside, settled = (
            np.array([getattr(test, way) for test in tests]) for way in ("zero", "outside", "inside", "settled")
        )
        result = family(zero, outside, inside, settled)
        careful += (result.zero <= 0.05).any()
        careless += (zero <= 0.05 / max(1, (result.outside > 0.05).sum())).any()
    assert careful / 200 <= 0.1 < 0.2 < careless / 200


def test_choices_after_looking_are_what_the_page_on_reports_says():
    closed = rates(over_choices, "closed at the first interval without 0, of 10 seeds", 10, 1000)
    assert near(closed["any verdict"], 0.14, 1000)
    assert near(closed["confirmatory ones"], 0.01, 1000)
    assert near(rates(over_choices, "the best 3 of 20 seeds", 3, 1000)["the best seeds"], 0.66, 1000)
    files = rates(over_choices, "12 files on the same runs, about 12 arms", 5, 300)
    assert near(files["each file alone"], 0.29, 300)
    assert near(files["over all claims on the runs"], 0.03, 300)


def test_a_planted_effect_is_found_at_the_stated_power():
    (job,) = (job for job in planted() if job.n == 5)
    assert near(rates(planted, job.scenario, 5, 1000)["verdicts"], 0.8, 1000)


def test_a_row_outside_its_range_is_seen():
    assert Row("t", "s", 3, "w", 0.06, 1000, (0.03, 0.07)).kept
    assert Row("t", "s", 3, "w", 0.10, 30, (0.03, 0.07)).kept
    assert not Row("t", "s", 3, "w", 0.10, 2000, (0.03, 0.07)).kept
    assert Row("t", "s", 3, "w", 0.10, 2000, None).kept


@pytest.mark.slow
def test_quick_mode_writes_all_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["calibration", "quick", str(tmp_path / "rows.json")])
    main()
    rows = json.loads((tmp_path / "rows.json").read_text())
    printed = capsys.readouterr().out
    assert {"method", "scenario", "n", "rate", "error", "promised", "kept"} <= set(rows[0])
    assert all(f"| {row['method']} | {row['scenario']} |" in printed for row in rows)
