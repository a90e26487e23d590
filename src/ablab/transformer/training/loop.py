"""Training: its entry points, for process 0 and for workers, and what happens between two steps."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytorch_lightning as pl

from ablab.code.machine import graceful_stop
from ablab.transformer.data.batches import MicroBatch, padding_share_of
from ablab.transformer.data.steps import AnySteps
from ablab.transformer.model.modes import as_written
from ablab.transformer.training.callbacks import Callback, Measurements
from ablab.transformer.training.checkpoints import Checkpoints
from ablab.transformer.training.cost import ProductTimer, peak_memory
from ablab.transformer.training.distributed import ALONE, SingleProcess
from ablab.transformer.training.module import StepReport, TrainingModule, run_steps
from ablab.transformer.training.state import StopCriteria, TrainingState
from ablab.transformer.training.validation import Validate
from ablab.transformer.training.workers import Worker, WorkerGroup

LOG_EVERY = 10
"""Steps between two readings of the loss, as reading it makes a GPU wait."""


@dataclass(frozen=True)
class TrainingResult:
    """The state in which training ended, and the reason."""

    state: Literal["finished", "diverged", "interrupted", "stopped"]
    reason: str


def _not_a_number(which: str, step: int) -> TrainingResult:
    return TrainingResult("diverged", f"the {which} is not a number at step {step}")


class TrainingLoop(pl.Callback):
    """Lightning callback that times each step, logs, validates and saves when due, and ends training."""

    def __init__(
        self,
        validate: Validate,
        state: TrainingState,
        ends: StopCriteria,
        checkpoints: Checkpoints,
        callbacks: Callback,
        valid_every: int,
        optimizer_state: dict[str, Any] | None,
        workers: WorkerGroup | SingleProcess,
        product: ProductTimer | None,
    ) -> None:
        self.validate, self.state, self.ends = validate, state, ends
        self.checkpoints, self.callbacks = checkpoints, callbacks
        self.valid_every, self.optimizer_state = valid_every, optimizer_state
        self.workers, self.product = workers, product
        self.outcome = TrainingResult("interrupted", "it had not begun")
        self.stop_asked = False
        self._last_log = (0.0, 0)

    def ask_to_stop(self) -> None:
        """Request that training save a checkpoint and end after the current step."""
        self.stop_asked = True

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Restore the optimiser's state and start the clock."""
        _restore(module, self.optimizer_state)
        self.optimizer_state = None
        self._now = self._saved = time.perf_counter()
        self._last_log = (self.state.train_seconds, self.state.tokens)

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: object, batch: list[MicroBatch], batch_idx: int
    ) -> None:
        """Count the step; log, validate and save when due; then end training or start the next step."""
        assert isinstance(module, TrainingModule)
        report = module.report
        assert report is not None
        state = self.state
        self._count(report)
        end = self.ends.before_validation(state)
        due = state.step % self.valid_every == 0 or end is not None
        saves = self.checkpoints.is_due(state.step, self._now - self._saved)
        wrong = None
        if due or state.step % LOG_EVERY == 0:
            wrong = self._log(report, batch)
        elif saves or self.stop_asked:
            self._catch_up(report)
        self.workers.check()  # after waiting for the device, so that no step spoilt by a lost process is saved
        stops = self.stop_asked
        if wrong is not None:
            return self._end(trainer, _not_a_number(wrong, state.step))
        if due:
            outcome = self._validate(module, end)
            if outcome is not None:
                return self._end(trainer, outcome)
            stops = self.stop_asked  # a request during a validation finds everything saved
        elif saves or stops:
            self._save(module)
        if stops:
            return self._end(trainer, TrainingResult("interrupted", f"stopped at step {state.step}"))
        self.workers.go_on(state.validations[-1] if due else None)
        return None

    def _count(self, report: StepReport) -> None:
        """Count one step and its time."""
        self.state.count(report.step, report.tokens, report.ran)
        self.state.train_seconds += self._elapsed()
        self.callbacks.on_step(self.state, self.ends.total_steps)

    def _elapsed(self) -> float:
        """Add the seconds since the last call to the state and return them."""
        before, self._now = self._now, time.perf_counter()
        self.state.seconds += self._now - before
        return self._now - before

    def _catch_up(self, report: StepReport) -> tuple[float, float]:
        """Wait for the device and return loss and gradient norm; the wait counts as training time."""
        found = float(report.loss), float(report.grad_norm)
        self.state.train_seconds += self._elapsed()
        return found

    def _log(self, report: StepReport, batch: list[MicroBatch]) -> str | None:
        """Send measurements to the callbacks, or return which of them is not finite: the loss or the gradient norm."""
        loss, grad_norm = self._catch_up(report)
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            return "gradient norm" if math.isfinite(loss) else "training loss"
        seconds, tokens = self._last_log
        spent = max(self.state.train_seconds - seconds, 1e-9)
        measurements = Measurements(
            step=report.step,
            loss=loss,
            learning_rate=report.learning_rate,
            grad_norm=grad_norm,
            drophead=report.drophead,
            tokens_per_second=(self.state.tokens - tokens) / spent,
            seconds=self.state.seconds,
            padding=padding_share_of(batch),
        )
        self._last_log = (self.state.train_seconds, self.state.tokens)
        self.callbacks.on_log(measurements)
        return None

    def _validate(self, module: TrainingModule, end: str | None) -> TrainingResult | None:
        """Validate, save, and return the result if training ends now: diverged, by `end`, a criterion or a callback."""
        validations = self.state.validations
        with as_written():
            validation, samples = self.validate(module.model, self.state.step)
            if not math.isfinite(validation.loss):  # the loss of the step, of the weights before it, was
                self._elapsed()
                return _not_a_number("validation loss", self.state.step)
            is_best = all(validation.better_than(other, self.ends.monitor) for other in validations)
            validations.append(validation)
            # Before the checkpoint: after a kill, a validation sent twice can be undone, one never sent is lost.
            self.callbacks.on_validation(validation, samples, is_best)
        if self.product is not None and self.product.due(self.state.seconds):
            self.state.product_speeds.append(self.product.speed())
        self._elapsed()
        self._save(module)
        end = end or self.ends.after_validation(self.state)
        reason = self.callbacks.stops(validations, self.ends.total_steps)
        self._elapsed()
        if end is not None:
            return TrainingResult("finished", end)
        return None if reason is None else TrainingResult("stopped", reason)

    def _save(self, module: TrainingModule) -> None:
        """Save the weights if they may be selected, and all that a resume needs."""
        self.callbacks.on_save()
        self.state.peak_memory = max(self.state.peak_memory, peak_memory())
        optimizer, weights = module.optimizers(use_pl_optimizer=False), module.model.state_dict()
        self.checkpoints.save(weights, optimizer.state_dict(), self.state)
        self._elapsed()
        self._saved = self._now

    def _end(self, trainer: pl.Trainer, outcome: TrainingResult) -> None:
        self.outcome = outcome
        trainer.should_stop = True


class WorkerLoop(pl.Callback):
    """Lightning callback of a worker process: waits after each step for process 0 to start the next."""

    def __init__(self, worker: Worker, state: TrainingState, optimizer_state: dict[str, Any] | None) -> None:
        self.worker, self.state, self.optimizer_state = worker, state, optimizer_state

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Restore the optimiser's state."""
        _restore(module, self.optimizer_state)
        self.optimizer_state = None

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: object, batch: list[MicroBatch], batch_idx: int
    ) -> None:
        """Wait for process 0, then continue with its new validations or end."""
        validations = self.worker.hear(self.state.kind)
        if validations is None:
            trainer.should_stop = True
        else:
            self.state.validations += validations  # the learning rate may depend on them


def _restore(module: pl.LightningModule, optimizer_state: dict[str, Any] | None) -> None:
    if optimizer_state is not None:
        module.optimizers(use_pl_optimizer=False).load_state_dict(optimizer_state)


def fit(
    module: TrainingModule,
    steps: AnySteps,
    validate: Validate,
    state: TrainingState,
    ends: StopCriteria,
    checkpoints: Checkpoints,
    callbacks: Callback,
    *,
    valid_every: int,
    trainer_options: dict[str, Any],
    optimizer_state: dict[str, Any] | None = None,
    workers: WorkerGroup | SingleProcess = ALONE,
    product: ProductTimer | None = None,
) -> TrainingResult:
    """Train from `state.step` to the end; `state` and the checkpoints are up to date when this returns."""
    loop = TrainingLoop(validate, state, ends, checkpoints, callbacks, valid_every, optimizer_state, workers, product)
    with graceful_stop(loop.ask_to_stop):
        run_steps(module, steps, loop, checkpoints.folder, trainer_options)
    return loop.outcome


def fit_worker(
    module: TrainingModule,
    steps: AnySteps,
    state: TrainingState,
    worker: Worker,
    folder: Path,
    *,
    trainer_options: dict[str, Any],
    optimizer_state: dict[str, Any] | None,
) -> None:
    """Compute this process's share of each step until process 0 ends the training."""
    run_steps(module, steps, WorkerLoop(worker, state, optimizer_state), folder, trainer_options)
