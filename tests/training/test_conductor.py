"""What is counted between two steps."""

from dataclasses import asdict
from types import SimpleNamespace

import pytest

from ablab.training import conductor
from ablab.training.conductor import Conductor
from ablab.training.course import Course, Ends
from ablab.training.lightning_module import StepReport, TranslationModule
from ablab.training.ranks import ALONE
from ablab.training.validation import Validation

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


class Ears:
    """Remembers the looks."""

    def __init__(self) -> None:
        self.looks: list[dict[str, float]] = []

    def on_step(self, *_: object) -> None:
        """Nothing."""

    def on_look(self, measurements) -> None:
        """One more."""
        self.looks.append(asdict(measurements))

    def on_validation(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def trained(monkeypatch):
    """20 steps of 30 tokens, validated at the end, on a device that is always behind."""
    clock, course, ears = Clock(), Course(), Ears()
    monkeypatch.setattr(conductor, "time", clock)
    monkeypatch.setattr(conductor, "padding_share_of", lambda _: 0.0)

    def validate(model, step):
        clock.now += VALIDATING
        return Validation(step, 2.0, 10.0), []

    class Module(TranslationModule):
        """Its reports are given to it."""

        def __init__(self) -> None:
            super().__init__(SimpleNamespace(state_dict=dict), None)

        def optimizers(self, **_):
            return SimpleNamespace(state_dict=dict)

    ends = Ends(total_steps=20, max_seconds=None, patience=None, monitor="bleu", plateau=None)
    saving = SimpleNamespace(is_due=lambda *_: False, save=lambda *_: None)
    follows = Conductor(validate, course, ends, saving, [ears], 20, None, ALONE, None, None)
    trainer, module = SimpleNamespace(should_stop=False), Module()
    follows.on_train_start(trainer, module)
    for step in range(1, 21):
        clock.now += STEP
        module.report = StepReport(step, OnDevice(clock), 30, 1.0, 0.1, 0.0, {})
        follows.on_train_batch_end(trainer, module, None, [], step)
    assert trainer.should_stop
    return course, ears.looks


def test_what_a_device_was_still_at_work_on_is_training_and_not_validation(trained):
    course, _ = trained
    assert course.train_seconds == 20 * STEP + 2 * QUEUED
    assert course.seconds == course.train_seconds + VALIDATING


def test_each_look_has_the_speed_of_its_own_steps(trained):
    _, looks = trained
    assert [look["tokens_per_second"] for look in looks] == [300 / (10 * STEP + QUEUED)] * 2
