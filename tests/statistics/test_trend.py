"""Drift of the baseline: the test of the slope, what it is worth, and what a report says and refuses."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import linregress

from ablab.judge.contrasts import evidence_of
from ablab.judge.drift import TIME, drifts
from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.report.sentences import drifted, on_drift
from ablab.statistics.interval import NotTestable
from ablab.statistics.trend import trend
from ablab.store.run_folder import RunFolder
from ablab.study.claims import Settled
from ablab.sweep.sweep import _alternating
from benchmarks.calibration import drift

SECONDS = replace(TIME, title="time of a run")
LOSS = Measure("loss", "nats", 3, False, None, lambda run: run.record and run.record.loss)


def test_equal_scores_do_not_change_at_all():
    found = trend([0, 1, 2, 3], [7.0] * 4, 3)
    assert (found.change, found.p, found.n) == (0.0, 1.0, 4)
    assert (found.interval.low, found.interval.high) == (0.0, 0.0)


@pytest.mark.parametrize("n", [3, 5, 12])
def test_it_is_the_t_test_of_a_straight_line(n):
    rng = np.random.default_rng(n)
    places, scores = rng.permutation(30)[:n], rng.normal(size=n)
    found, known = trend(places, scores, 29), linregress(places, scores)
    assert found.p == pytest.approx(known.pvalue)
    assert found.change == pytest.approx(29 * known.slope)
    assert trend(places, scores, 29, 1 - known.pvalue).interval.excludes(1e-9 * found.change) is False
    interval = trend(places, scores, 29, 0.95).interval
    assert found.change - interval.low == pytest.approx(interval.high - found.change)
    assert found.change > interval.low
    narrower = trend(places, scores, 29, 1 - 1.01 * known.pvalue).interval
    assert narrower.excludes(0.0)


def test_a_trend_needs_three_runs_at_different_places_and_says_nothing_of_equal_scores():
    for places, scores in (([0, 1], [1, 2]), ([4, 4, 4], [1, 2, 3])):
        with pytest.raises(NotTestable):
            trend(places, scores, 5)
    assert trend([0, 1, 2], [7, 7, 7], 5).p == 1
    assert trend([0, 1, 2], [7, 8, 9], 5).p == 0
    with pytest.raises(ValueError, match="finite"):
        trend([0, 1, 2], [1, 2, float("nan")], 5)


def test_the_simulated_test_is_that_of_the_report_and_its_order_that_of_a_sweep():
    scores = np.random.default_rng(0).normal(size=(20, 5))
    places = drift.alternating(5)
    assert drift.trends(places[0], scores) == pytest.approx([trend(places[0], one, 9).p for one in scores])
    cells = [SimpleNamespace(seed=seed, arm=arm) for arm in range(2) for seed in range(5)]
    launched = [(cell.arm, cell.seed) for cell in _alternating(cells)]
    assert [[launched.index((arm, seed)) for seed in range(5)] for arm in range(2)] == places.tolist()


def test_the_simulation_writes_rates(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["drift", "quick", str(tmp_path / "drift.json")])
    drift.main()
    found = json.loads((tmp_path / "drift.json").read_text())
    assert found.keys() == json.loads(Path("benchmarks/results/drift.json").read_text()).keys()
    assert found["8 sd, even"]["n=10"]["seen"] > 0.9 > 0.2 > found["no drift, normal"]["n=10"]["seen"]


def study(seconds, order, seeds=5, metric="seconds"):
    """A selection of two arms. seconds: of a run by its place; order: the arm of each place."""
    runs = {"old": [], "new": []}
    for place, arm in enumerate(order):
        own = runs[arm]
        record = SimpleNamespace(
            ended=f"2026-01-01T{10 + place // 60:02}:{place % 60:02}:00Z",
            cost=SimpleNamespace(seconds=seconds(place)),
            loss=2.0 + 0.001 * (place % 3),
            stretches=[],
            runtime={},
            provenance={},
        )
        folder = RunFolder(Path(f"outputs/runs/r{arm}{len(own)}"))
        own.append(ArmRun(folder, len(own) + 1, "finished", record, None, None, {}))
    claim = Settled.model_validate({"arm": "new", "baseline": "old", "expect": "less", "metric": "seconds"})
    return SelectedArms(
        name="s", question="", source=None, arms=[ArmRuns(name, own[:seeds]) for name, own in runs.items()],
        baseline="old", metric=metric, claims=[claim], registered=None, outputs=Path("outputs"),
        measures={"seconds": SECONDS, "loss": LOSS},
    )  # fmt: skip


ALTERNATING = ["old", "new", "new", "old"] * 3
IN_TURN = ["old"] * 6 + ["new"] * 6


def growing(place):
    return 10 * 1.05**place + 0.01 * (place % 2)


def steady(place):
    return 10 + 0.3 * ((7 * place) % 5)


@pytest.mark.parametrize("order", [ALTERNATING, IN_TURN])
def test_a_baseline_that_grows_slower_is_named_with_its_size(order):
    selection = study(growing, order)
    (line,) = drifts(selection)
    assert line.found
    assert line.change == pytest.approx(1.05 ** (len([r for a in selection.arms for r in a.runs]) - 1) - 1, rel=0.1)
    assert drifted(line).startswith("time of a run of old drifted by +")
    (told,) = on_drift([line])
    assert told.startswith("The baseline changed over the order of the runs: time of a run +")


def test_costs_of_arms_that_ran_at_other_times_are_refused_where_the_baseline_drifted():
    def evidence(seconds, order):
        selection = study(seconds, order)
        return evidence_of(selection, selection.claims[0], SECONDS)

    assert isinstance(evidence(growing, ALTERNATING), list)
    assert isinstance(evidence(steady, IN_TURN), list)
    refused = evidence(growing, IN_TURN)
    assert isinstance(refused, NotTestable)
    assert "time of a run of old changed by +" in str(refused)
    assert "most runs of new came after those of old" in str(refused)


def test_scores_and_times_share_an_error_and_scores_are_never_refused():
    selection = study(growing, IN_TURN, metric="loss")
    loss, time = drifts(selection)
    assert (time.title, loss.title, time.tests) == ("time of a run", "loss", 2)
    assert time.found and not loss.found  # noqa: PT018
    assert isinstance(evidence_of(selection, selection.claims[0].model_copy(update={"metric": "loss"}), LOSS), list)


def test_two_runs_of_a_baseline_tell_nothing():
    assert drifts(study(growing, ALTERNATING, seeds=2)) == []
