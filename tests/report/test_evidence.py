"""What may be judged: an arm whose training had not ended by the measure in question is no evidence."""

from dataclasses import replace

import pytest

from ablab.judge.estimates import borrowed
from ablab.judge.evidence import evidence
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from ablab.statistics.interval import NotTestable
from tests.translation import MEASURES


def at_speeds(arm, speeds):
    """The arm with so many tokens a second under each of its seeds."""

    def told(run, speed):
        cost = run.record.cost.model_copy(update={"tokens_per_second": speed})
        return replace(run, record=run.record.model_copy(update={"cost": cost}))

    return ArmRuns(arm.name, [told(run, speed) for run, speed in zip(arm.runs, speeds, strict=True)])


def with_last_fifth(arm, key, gain):
    """The arm with validations that gain so much over the last fifth of training, and are flat otherwise."""

    def told(run):
        steps = range(50, 1001, 50)
        rows = [{"step": float(step), "loss": 2.0, "bleu": 20.0, "perplexity": 7.4} for step in steps]
        for row in rows:
            row[key] += gain * max(0.0, row["step"] - 800) / 200
        return replace(run, record=run.record.model_copy(update={"validations": rows}))

    return ArmRuns(arm.name, [told(run) for run in arm.runs])


def with_vocabulary(selection, *names, size=600):
    """The selection with these arms as if trained with another vocabulary."""

    def told(arm):
        return ArmRuns(arm.name, [replace(run, recipe={**run.recipe, "data.vocab_size": size}) for run in arm.runs])

    return replace(selection, arms=[told(arm) if arm.name in names else arm for arm in selection.arms])


@pytest.mark.parametrize(
    ("key", "gain", "metric", "margin", "is_under_trained"),
    [
        ("bleu", 2.0, "test_bleu", 0.5, True),
        ("bleu", 2.0, "test_bleu", 3.0, False),  # less than what matters
        ("bleu", 2.0, "test_chrf", 3.0, True),  # a margin in chrF says nothing of BLEU
        ("bleu", -2.0, "test_bleu", 0.5, False),  # getting worse is not under-trained
        ("bleu", 2.0, "valid_loss", 0.05, False),
        ("bleu", 2.0, "training_speed", 0.0, False),
        ("loss", -0.2, "valid_loss", 0.05, True),
        ("loss", -0.2, "test_loss", 0.05, True),
        ("bleu", 2.0, "test_loss", 0.05, False),
        ("loss", -0.2, "valid_loss", 0.5, False),
        ("loss", -0.2, "test_bleu", 0.05, False),
    ],
)
def test_each_measure_has_its_own_curve_to_come_to_rest(reported, key, gain, metric, margin, is_under_trained):
    selection = of_study(reported.study)
    usual, other = (with_last_fifth(arm, key, gain) for arm in selection.arms[:2])
    found = evidence(other, usual, MEASURES[metric], margin)
    assert (isinstance(found, NotTestable) and "under-trained" in str(found)) == is_under_trained
    if not is_under_trained:
        assert len(found) == 5


def test_evaluations_from_before_there_was_a_test_loss_have_no_evidence_of_it(reported):
    arms = of_study(reported.study).arms[:2]
    usual, other = (
        ArmRuns(
            arm.name, [replace(run, evaluation=run.evaluation.model_copy(update={"scores": {}})) for run in arm.runs]
        )
        for arm in arms
    )
    found = evidence(other, usual, MEASURES["test_loss"], 0.0)
    assert isinstance(found, NotTestable)
    assert str(found).endswith("have no test loss")


@pytest.mark.parametrize(("slowest", "is_refused"), [(95.0, False), (50.0, True)])
def test_a_busy_machine_is_no_property_of_an_arm(reported, slowest, is_refused):
    usual, other = of_study(reported.study).arms[:2]
    found = evidence(
        at_speeds(other, [200.0, 201.0, 202.0, 203.0, 204.0]),
        at_speeds(usual, [slowest, 101.0, 102.0, 103.0, 104.0]),
        MEASURES["training_speed"],
        0.0,
    )
    assert isinstance(found, NotTestable) == is_refused
    assert not is_refused or "layerdrop=0 is 2.1 times as high in one run as in another" in str(found)


def test_a_cost_of_zero_is_refused_beside_others(reported):
    usual, other = of_study(reported.study).arms[:2]
    slow, fast = at_speeds(usual, [0.0, 101.0, 102.0, 103.0, 104.0]), at_speeds(other, [101.0] * 5)
    found = evidence(fast, slow, MEASURES["training_speed"], 0.0)
    assert "layerdrop=0 is 0 in one run and 104 in another: more than the seed differed" in str(found)


@pytest.mark.parametrize(
    ("metric", "is_refused"),
    [
        *(("valid_loss", True), ("test_loss", True), ("valid_loss_per_character", False)),
        *(("test_loss_per_character", False), ("test_bleu", False), ("training_speed", False)),
    ],
)
def test_a_loss_per_token_is_no_evidence_between_two_vocabularies(reported, metric, is_refused):
    """Whatever has no vocabulary in its unit goes on being compared."""
    selection = of_study(reported.study)
    arms = with_vocabulary(selection, "layerdrop=0.1").arms
    found = evidence(arms[1], arms[0], MEASURES[metric], 0.5)
    assert isinstance(found, NotTestable) == is_refused
    if is_refused:
        usual = selection.arms[0].runs[0].recipe["data.vocab_size"]
        assert f"is per token, and the vocabularies differ (data.vocab_size 600, {usual})" in str(found)
        assert str(found).endswith("nats per character can be compared")
    else:
        assert len(found) == 5


def test_within_one_vocabulary_losses_per_token_are_compared(reported):
    arms = with_vocabulary(of_study(reported.study), "layerdrop=0", "layerdrop=0.1").arms
    assert len(evidence(arms[1], arms[0], MEASURES["valid_loss"], 0.5)) == 5


def test_an_arm_borrows_no_noise_in_losses_per_token_of_another_vocabulary(reported):
    selection = of_study(reported.study)
    other = with_vocabulary(selection, "layerdrop=0.2")
    of_loss, of_bleu = (borrowed(other, other.arms[:2], MEASURES[name]) for name in ("valid_loss", "test_bleu"))
    assert (len(of_loss), len(of_bleu)) == (0, 1)


@pytest.mark.parametrize(("metric", "is_moving"), [("valid_loss", True), ("valid_loss_per_character", True)])
def test_a_loss_per_character_has_a_curve_of_its_own(reported, metric, is_moving):
    arms = of_study(reported.study).arms[:2]
    key = "loss" if metric == "valid_loss" else "loss_per_character"

    def with_curve(arm):
        told = with_last_fifth(arm, "loss", 0.0)
        for run in told.runs:
            for row in run.record.validations:
                row["loss_per_character"] = 0.5
        return with_gain(told)

    def with_gain(arm):
        for run in arm.runs:
            for row in run.record.validations:
                row[key] -= 0.2 * max(0.0, row["step"] - 800) / 200
        return arm

    found = evidence(*map(with_curve, arms), MEASURES[metric], 0.05)
    assert (isinstance(found, NotTestable) and "under-trained" in str(found)) == is_moving
    assert not isinstance(evidence(*map(with_curve, arms), MEASURES[metric], 0.3), NotTestable)


def test_the_convergence_of_older_runs_is_unknown_per_character(reported):
    arms = [with_last_fifth(arm, "loss", 0.0) for arm in of_study(reported.study).arms[:2]]
    found = evidence(arms[1], arms[0], MEASURES["valid_loss_per_character"], 0.05)
    assert str(found) == "the validations of layerdrop=0.1 are unknown"
