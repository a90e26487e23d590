"""What happens between two steps: time is taken, the model validated and saved, and the end decided."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytorch_lightning as pl

from ablab.data.steps import Batch, padding_share_of
from ablab.training.audience import Listener, Measurements, Referee
from ablab.training.checkpoints import Checkpoints
from ablab.training.compiled import as_written
from ablab.training.course import Course, Ends
from ablab.training.crew import Crew, Follower
from ablab.training.lightning_module import StepReport, TranslationModule
from ablab.training.ranks import Alone
from ablab.training.validation import Validator

LOOK_EVERY = 10
"""Steps between two looks at the loss: looking makes a GPU wait."""


@dataclass(frozen=True)
class Outcome:
    """How training ended, and why."""

    state: Literal["finished", "diverged", "interrupted", "stopped"]
    reason: str


class Conductor(pl.Callback):
    """Follows each step: times it, validates when due, saves, and says when it is over."""

    def __init__(
        self,
        validator: Validator,
        course: Course,
        ends: Ends,
        checkpoints: Checkpoints,
        listeners: Sequence[Listener],
        valid_every: int,
        optimizer_state: dict[str, Any] | None,
        crew: Crew | Alone,
        referee: Referee | None,
    ) -> None:
        self.validator, self.course, self.ends = validator, course, ends
        self.checkpoints, self.listeners = checkpoints, listeners
        self.valid_every, self.optimizer_state = valid_every, optimizer_state
        self.crew, self.referee = crew, referee
        self.outcome = Outcome("interrupted", "it had not begun")
        self.stop_asked = False
        self._last_look = (time.perf_counter(), 0)

    def ask_to_stop(self) -> None:
        """Save a checkpoint and end after the step that is being computed."""
        self.stop_asked = True

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """The optimiser goes on where it was, and the clock begins."""
        _restore(module, self.optimizer_state)
        self.optimizer_state = None
        self._now = time.perf_counter()
        self._last_look = (self.course.train_seconds, self.course.tokens)

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: object, batch: list[Batch], batch_idx: int
    ) -> None:
        """A step was made: count it, look, validate and save when due, and end or go on."""
        assert isinstance(module, TranslationModule)
        report = module.report
        assert report is not None
        course = self.course
        course.step = report.step
        course.tokens += report.tokens
        course.train_seconds += self._elapsed()
        for listener in self.listeners:
            listener.on_step(course, self.ends.total_steps)

        end = self.ends.before_validation(course)
        due = course.step % self.valid_every == 0 or end is not None
        looks = due or course.step % LOOK_EVERY == 0 or self.stop_asked
        finite = self._look(report, batch) if looks else True
        self.crew.check()  # after the look, which waits for the device: what a lost process has spoilt is not kept
        if not finite:
            reason = f"the training loss is not a number at step {course.step}"
            return self._end(trainer, Outcome("diverged", reason))
        if due:
            with as_written():
                self._validate(module)
            end = end or self.ends.after_validation(course)
            said = None if self.referee is None else self.referee(course.validations, self.ends.total_steps)
            self._elapsed()
            if said is not None and end is None:
                return self._end(trainer, Outcome("stopped", said))
        if self.stop_asked and end is None:
            self._save_last(module)
            return self._end(trainer, Outcome("interrupted", f"stopped at step {course.step}"))
        if end is not None:
            return self._end(trainer, Outcome("finished", end))
        self.crew.go_on(course.validations[-1:] if due else [])
        return None

    def _elapsed(self) -> float:
        """Seconds since the last call, added to the course."""
        before, self._now = self._now, time.perf_counter()
        self.course.seconds += self._now - before
        return self._now - before

    def _look(self, report: StepReport, batch: list[Batch]) -> bool:
        """Tell the listeners; False when the loss or the gradient is not finite."""
        loss, grad_norm = float(report.loss), float(report.grad_norm)
        self.course.train_seconds += self._elapsed()  # a GPU was still at work on the steps since the last look
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            return False
        seconds, tokens = self._last_look
        spent = max(self.course.train_seconds - seconds, 1e-9)
        measurements = Measurements(
            step=report.step,
            loss=loss,
            learning_rate=report.learning_rate,
            grad_norm=grad_norm,
            drophead=report.drophead,
            tokens_per_second=(self.course.tokens - tokens) / spent,
            seconds=self.course.seconds,
            padding=padding_share_of(batch),
        )
        self._last_look = (self.course.train_seconds, self.course.tokens)
        for listener in self.listeners:
            listener.on_look(measurements)
        return True

    def _validate(self, module: TranslationModule) -> None:
        validation, translations = self.validator(module.model, self.course.step)
        leaders = self.course.validations
        is_best = all(validation.better_than(other, self.ends.monitor) for other in leaders)
        self.course.validations.append(validation)
        self.checkpoints.save_validated(module.model.state_dict(), self.course)
        # Before the checkpoint: what is told twice after a kill can be taken back, what was never told is lost.
        for listener in self.listeners:
            listener.on_validation(validation, translations, is_best)
        self._elapsed()
        self._save_last(module)
        self._elapsed()

    def _save_last(self, module: TranslationModule) -> None:
        optimizer = module.optimizers(use_pl_optimizer=False)
        self.checkpoints.save_last(module.model.state_dict(), optimizer.state_dict(), self.course)

    def _end(self, trainer: pl.Trainer, outcome: Outcome) -> None:
        self.outcome = outcome
        trainer.should_stop = True


class Following(pl.Callback):
    """After each step waits to hear whether there is another."""

    def __init__(self, follower: Follower, course: Course, optimizer_state: dict[str, Any] | None) -> None:
        self.follower, self.course, self.optimizer_state = follower, course, optimizer_state

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """The optimiser goes on where it was."""
        _restore(module, self.optimizer_state)
        self.optimizer_state = None

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: object, batch: list[Batch], batch_idx: int
    ) -> None:
        """Wait for the word of process 0."""
        validations = self.follower.hear()
        if validations is None:
            trainer.should_stop = True
        else:
            self.course.validations += validations  # the learning rate may depend on them


def _restore(module: pl.LightningModule, optimizer_state: dict[str, Any] | None) -> None:
    if optimizer_state is not None:
        module.optimizers(use_pl_optimizer=False).load_state_dict(optimizer_state)
