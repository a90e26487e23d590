"""What a run says on the console: bars, a line per validation, how many epochs it has and how long it will take."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

from ablab.tracking.console import Console
from ablab.transformer.training.callbacks import Callback, Measurements
from ablab.transformer.training.state import TrainingState
from ablab.transformer.training.validation import Samples, Validation


class ConsoleCallback(Callback):
    """Shows progress bars on the console, and prints a line per validation."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._open = ExitStack()

    def on_message(self, line: str) -> None:
        self.console.say(line)

    def counting(self, title: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
        return self.console.counting(title, total)

    def on_fit_start(self, state: TrainingState) -> None:
        self.bar = self._open.enter_context(self.console.training_bar())
        self.clock = StepClock()

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        self.bar.show(state.step, total_steps)
        if (line := self.clock.estimate(state.step, total_steps, time.perf_counter())) is not None:
            self.console.say(line)

    def on_log(self, measurements: Measurements) -> None:
        self.bar.describe(f"loss {measurements.loss:.3f}   {measurements.tokens_per_second:,.0f} tokens/s")

    def on_validation(self, validation: Validation, samples: Samples, is_best: bool) -> None:
        self.console.say(f"step {validation.step:>6,}   {validation.line}{'   best' if is_best else ''}")

    def on_fit_end(self) -> None:
        self._open.close()


FEW_EPOCHS, MANY_EPOCHS, USUAL_EPOCHS = 1, 100, 10
"""Passes over the corpus below and above which a run names the steps of a usual number of them."""


def epochs_line(steps: int, of_epoch: int) -> str:
    """Say how many epochs the steps are; where that is unusual, also how many steps would be usual."""
    epochs = steps / of_epoch
    said = f"{steps:,} steps at most, {epochs:,.{0 if epochs >= MANY_EPOCHS else 1}f} epochs of {of_epoch:,} steps"
    if FEW_EPOCHS <= epochs <= MANY_EPOCHS:
        return said
    return f"{said}; {USUAL_EPOCHS} epochs: training.max_steps={USUAL_EPOCHS * of_epoch}"


class StepClock:
    """Estimates once how long training will take, from the first steps after the slow ones at its beginning."""

    SKIPPED, TIMED = 10, 20
    WORTH_SAYING = 60.0
    """Seconds of training below which no estimate is worth a line."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, float]] = []

    def estimate(self, step: int, total: int | None, now: float) -> str | None:
        """Return the estimate when it is due, without the time of validations; None if no last step is known."""
        due = self.SKIPPED + self.TIMED + 1
        if total is None or len(self._seen) == due:
            return None
        self._seen.append((step, now))
        if len(self._seen) < due:
            return None
        begun, then = self._seen[self.SKIPPED]
        seconds = (now - then) / (step - begun) * (total - step)
        if seconds < self.WORTH_SAYING:
            return None
        return f"about {about(seconds)} for the other {total - step:,} steps, without validations"


def about(seconds: float) -> str:
    """Format an estimate: `12 min`, `2 h 5 min`."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
