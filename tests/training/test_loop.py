"""What is counted between two steps."""

import math
from dataclasses import asdict
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from ablab.transformer.training import loop
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.distributed import ALONE
from ablab.transformer.training.loop import TrainingLoop, TrainingResult
from ablab.transformer.training.module import StepReport, TrainingModule
from ablab.transformer.training.state import StopCriteria, TrainingState
from ablab.transformer.training.validation import Samples
from ablab.transformer.translation.validation import TranslationValidation as Validation

STEP, QUEUED, VALIDATING = 1.0, 8.0, 100.0
"""Seconds: of a step as the processor sees it, of what a device still has to do when it is asked, of a validation."""


class Clock:
    """Only what is done takes time."""

    def __init__(self) -> None:
        self.now = 50.0

    def perf_counter(self) -> float:
        return self.now


class OnDevice:
    """A number that is ready when the device has caught up; asked again, it is there."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.wait = clock, QUEUED

    def __float__(self) -> float:
        self.clock.now += self.wait
        self.wait = 0.0
        return 1.0


class Ears(Callback):
    """Remembers the looks."""

    def __init__(self) -> None:
        self.looks: list[dict[str, float]] = []
        self.validations: list[Validation] = []

    def on_log(self, measurements) -> None:
        self.looks.append(asdict(measurements))

    def on_validation(self, validation, samples, is_best) -> None:
        self.validations.append(validation)


class Saving:
    """In place of the checkpoints: remembers the steps that were saved."""

    def __init__(self, seconds_apart: float) -> None:
        self.seconds_apart, self.saved = seconds_apart, []

    def is_due(self, step: int, seconds: float) -> bool:
        return seconds >= self.seconds_apart

    def save(self, model: object, optimizer: object, state: TrainingState) -> None:
        self.saved.append(state.step)


def train(monkeypatch, seconds_apart: float = 1e9, valid_loss: float = 2.0, grad_norm: float = 1.0):
    """20 steps of 30 tokens, validated at the end, on a device that is always behind."""
    clock, state, ears, saving = Clock(), TrainingState(), Ears(), Saving(seconds_apart)
    monkeypatch.setattr(loop, "time", clock)
    monkeypatch.setattr(loop, "padding_share_of", lambda _: 0.0)

    def validate(model, step):
        clock.now += VALIDATING
        return Validation(step, valid_loss, 10.0), Samples()

    class Module(TrainingModule):
        """Its reports are given to it."""

        def __init__(self) -> None:
            super().__init__(SimpleNamespace(state_dict=dict), None)

        def optimizers(self, **_):
            return SimpleNamespace(state_dict=dict)

    ends = StopCriteria(total_steps=20, max_seconds=None, patience=None, monitor="bleu", schedule=None)
    follows = TrainingLoop(validate, state, ends, saving, ears, 20, None, ALONE, None)
    trainer, module = SimpleNamespace(should_stop=False), Module()
    follows.on_train_start(trainer, module)
    for step in range(1, 21):
        clock.now += STEP
        module.report = StepReport(step, OnDevice(clock), 30, grad_norm, 0.1, 0.0, {})
        follows.on_train_batch_end(trainer, module, None, [], step)
    assert trainer.should_stop
    return Trained(state, ears.looks, saving.saved, ears.validations, follows.outcome)


class Trained(NamedTuple):
    """What came of it."""

    state: TrainingState
    looks: list[dict[str, float]]
    saved: list[int]
    validations: list[Validation]
    outcome: TrainingResult


def test_what_a_device_was_still_at_work_on_is_training_and_not_validation(monkeypatch):
    state = train(monkeypatch).state
    assert state.train_seconds == 20 * STEP + 2 * QUEUED
    assert state.seconds == state.train_seconds + VALIDATING


def test_each_look_has_the_speed_of_its_own_steps(monkeypatch):
    assert [look["tokens_per_second"] for look in train(monkeypatch).looks] == [300 / (10 * STEP + QUEUED)] * 2


def test_the_state_is_saved_when_so_much_time_has_passed_since_it_was_saved_before(monkeypatch):
    """Every fourth second; a step takes one, and that of the look at step 10 takes nine."""
    assert train(monkeypatch, seconds_apart=4.0).saved == [4, 8, 11, 15, 19, 20]


def test_whoever_saves_waits_for_the_device_and_that_is_training(monkeypatch):
    """Once at each step that looks or saves."""
    trained = train(monkeypatch, seconds_apart=4.0)
    state, waits = trained.state, len({10, 20, *trained.saved})
    assert state.train_seconds == 20 * STEP + waits * QUEUED
    assert state.seconds == state.train_seconds + VALIDATING


def test_a_gradient_that_is_not_a_number_is_divergence_and_the_loss_is_not_blamed(monkeypatch):
    trained = train(monkeypatch, grad_norm=math.nan)
    assert trained.outcome.reason.startswith("the gradient norm is not a number at step ")
    assert not trained.looks


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_validation_that_is_not_a_number_is_divergence_and_not_among_the_validations(loss, monkeypatch):
    """Neither curves nor records can hold it."""
    trained = train(monkeypatch, valid_loss=loss)
    assert trained.outcome == TrainingResult("diverged", "the validation loss is not a number at step 20")
    assert not trained.validations
    assert not trained.state.validations
    assert not trained.saved
    assert trained.state.seconds == trained.state.train_seconds + VALIDATING
