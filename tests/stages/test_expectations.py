"""What a run says before it has trained: how long it will take, and how often it passes over its corpus."""

import pytest

from ablab.transformer.stages.console_callback import StepClock, about, epochs_line


def _said(seconds_per_step: float, total: int | None, begin: int = 1) -> list[tuple[int, str]]:
    clock, said = StepClock(), []
    for step in range(begin, begin + 100):
        # The first steps are ten times as slow: memory is allocated, kernels are chosen.
        now = sum(seconds_per_step * (10 if each < begin + 5 else 1) for each in range(begin, step))
        if (line := clock.estimate(step, total, now)) is not None:
            said.append((step, line))
    return said


@pytest.mark.parametrize("begin", [1, 500])
def test_the_estimate_is_said_once_and_slow_first_steps_do_not_matter(begin):
    ((step, line),) = _said(0.24, begin + 3000, begin)
    left = begin + 3000 - step
    assert line.startswith(f"about {about(0.24 * left)} for the other {left:,} steps")


@pytest.mark.parametrize(("seconds", "total"), [(0.01, 3000), (0.24, None)])
def test_a_short_training_or_one_without_a_last_step_has_none(seconds, total):
    assert _said(seconds, total) == []


@pytest.mark.parametrize(("seconds", "text"), [(20, "1 min"), (725, "12 min"), (3 * 3600 + 240, "3 h 4 min")])
def test_an_estimate_has_no_seconds(seconds, text):
    assert about(seconds) == text


def test_steps_that_suit_the_corpus_are_named_where_they_are_far_from_it():
    assert (
        epochs_line(20_000, 10) == "20,000 steps at most, 2,000 epochs of 10 steps; 10 epochs: training.max_steps=100"
    )
    assert epochs_line(100, 400) == "100 steps at most, 0.2 epochs of 400 steps; 10 epochs: training.max_steps=4000"


@pytest.mark.parametrize("steps", [10, 400, 1000])
def test_usual_numbers_of_epochs_are_not_commented(steps):
    assert "training.max_steps" not in epochs_line(steps, 10)
