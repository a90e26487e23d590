"""What is said of an arm before it is compared: runs that are missing, other budgets, other machines."""

from dataclasses import replace

import pytest

from ablab.judge.arms import _arm_notes, arm_line
from ablab.judge.evidence import EVEN
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from tests.report.test_evidence import with_last_fifth


@pytest.fixture
def selection(reported):
    return of_study(reported.study)


def notes(selection, change, *, seeds=(1, 2)):
    """Notes on the second arm with these of its seeds, its runs changed by `change(seed, record)`."""
    baseline, arm = selection.arms[:2]
    runs = [replace(run, record=change(run.seed, run.record)) for run in arm.runs if run.seed in seeds]
    return _arm_notes(selection, ArmRuns(arm.name, runs), baseline)


def test_of_an_arm_like_the_baseline_nothing_is_said(selection):
    assert notes(selection, lambda seed, record: record) == []


@pytest.mark.parametrize(("seeds", "is_said"), [((1,), True), ((1, 2), False)])
def test_a_single_seed_is_told(selection, seeds, is_said):
    assert ("one seed, no interval" in notes(selection, lambda seed, record: record, seeds=seeds)) == is_said


def test_a_single_seed_beside_diverged_ones_is_told_as_theirs(selection):
    baseline, arm = selection.arms[:2]
    first, second = arm.runs[:2]
    runs = [first, replace(second, state="diverged", evaluation=None)]
    assert _arm_notes(selection, ArmRuns(arm.name, runs), baseline) == ["1 of 2 runs diverged"]


def of_cost(record, **update):
    return record.model_copy(update={"cost": record.cost.model_copy(update=update)})


def test_other_steps_than_the_baseline_are_another_budget(selection):
    usual = {run.record.cost.steps for run in selection.baseline_row.runs}
    (said,) = notes(selection, lambda seed, record: of_cost(record, steps=4000 + seed))
    assert said == f"other budget: steps 4,001, 4,002, baseline {', '.join(f'{steps:,}' for steps in usual)}"


@pytest.mark.parametrize(("fastest", "is_said"), [(100 * EVEN, False), (100 * EVEN + 1, True)])
def test_speeds_that_differ_within_an_arm_are_told_beyond_what_is_even(selection, fastest, is_said):
    said = notes(selection, lambda seed, record: of_cost(record, tokens_per_second=100.0 if seed == 1 else fastest))
    assert said == ([f"100 to {fastest:,.0f} target tokens/s in training: the machine was busy"] if is_said else [])


def test_a_speed_that_was_not_measured_says_nothing_of_the_machine(selection):
    assert notes(selection, lambda seed, record: of_cost(record, tokens_per_second=100.0 * (seed - 1))) == []


def test_runs_that_the_clock_ended_are_told(selection):
    said = notes(selection, lambda seed, record: record.model_copy(update={"time_limited": seed == 2}))
    assert said == ["training ended by the clock"]


def test_machines_that_differ_within_an_arm_are_told(selection):
    def run_on(seed, record):
        return record.model_copy(update={"runtime": {**record.runtime, "device": "cpu", "threads": seed}})

    assert notes(selection, run_on)[-1] == "trained on cpu, 1 thread and cpu, 2 threads"
    assert notes(selection, lambda seed, record: run_on(seed - 1, record))[-1] == "trained on cpu and cpu, 1 thread"
    assert not any(said.startswith("trained on") for said in notes(selection, run_on, seeds=(2,)))


def test_versions_of_the_code_within_an_arm_are_counted(selection):
    def made(seed, record):
        return record.model_copy(update={"provenance": {**record.provenance, "code": f"2:{seed}"}})

    assert "from 2 versions of the code" in notes(selection, made)
    assert not any("versions of the code" in said for said in notes(selection, made, seeds=(2,)))


@pytest.mark.parametrize(
    ("key", "gain", "moving"),
    [("bleu", 2.0, ["test_bleu", "training_speed"]), ("loss", -0.2, ["test_loss"]), ("bleu", 0.0, [])],
)
def test_an_arm_has_come_to_rest_by_the_curve_of_its_metric_and_a_cost_by_the_usual_one(selection, key, gain, moving):
    arm = with_last_fifth(selection.arms[1], key, gain)
    for metric in ("test_bleu", "test_loss", "training_speed"):
        line = arm_line(replace(selection, metric=metric), arm, selection.folder)
        assert (line.convergence == "moving") == (metric in moving), metric
