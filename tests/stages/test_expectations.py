"""What a run says before it has trained: how long it will take, and how often it passes over its corpus."""

from types import SimpleNamespace

import pytest

from ablab.config import compose
from ablab.transformer.stages.builders import limit
from ablab.transformer.stages.console_callback import StepClock, about, epochs_line
from ablab.transformer.stages.train import _limits


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


@pytest.mark.parametrize(
    ("words", "total", "said"),
    [
        ([], 400, "400 steps at most, 4.0 epochs of 100 steps"),
        (["training.max_epochs=2"], 200, "200 steps: training.max_epochs=2 comes before training.max_steps=400"),
        (["training.max_epochs=9"], 400, "training.max_epochs=9 has no effect: training.max_steps=400 comes first"),
    ],
)
def test_the_limit_that_comes_first_is_named(words, total, said):
    config = compose(["training.max_steps=400", "schedule.warmup_steps=100", *words]).config
    steps = SimpleNamespace(steps_in=lambda epochs: 100 * epochs)
    assert limit(steps, config).total == total
    assert [*_limits(config, steps)] == [said]


def test_a_warm_up_without_an_end_is_said():
    config = compose(["training.max_steps=80", "schedule.warmup_steps=100"]).config
    steps = SimpleNamespace(steps_in=lambda epochs: 10 * epochs)
    *_, line = _limits(config, limit(steps, config))
    assert line == "schedule.warmup_steps=100: the rate still rises when training ends, after 80 steps"


def test_no_epochs_are_counted_beyond_the_steps():
    config = compose(["training.max_steps=80", "training.max_epochs=1000000"]).config
    asked = []
    assert limit(SimpleNamespace(steps_in=lambda epochs: asked.append(epochs) or epochs), config).total == 80
    assert asked == [80]
