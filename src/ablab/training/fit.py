"""Trains a model to its end: steps, validations, checkpoints. Lightning runs the loop."""

import logging
import math
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.utilities.exceptions import SIGTERMException
from torch.utils.data import DataLoader

from ablab.data.steps import Batch, TrainingSteps, padding_share_of
from ablab.training.checkpoints import Checkpoints
from ablab.training.course import Course, Ends
from ablab.training.crew import Crew, Follower
from ablab.training.lightning_module import StepReport, TranslationModule
from ablab.training.ranks import ALONE, Alone
from ablab.training.validation import Validation, Validator

LOOK_EVERY = 10
"""Steps between two looks at the loss: looking makes a GPU wait."""


@dataclass(frozen=True)
class Outcome:
    """How training ended, and why."""

    state: Literal["finished", "diverged", "interrupted", "stopped"]
    reason: str


@dataclass(frozen=True)
class Measurements:
    """What a look at training shows. `loss`: nats per target token, label smoothing apart; it, and `padding`, the
    share of positions that are padding, are of this step's batch.
    """

    step: int
    loss: float
    learning_rate: float
    grad_norm: float
    drophead: float
    tokens_per_second: float
    seconds: float
    padding: float


class Listener(Protocol):
    """Somebody who wants to know how training goes. Nothing that a listener does may change the training."""

    def on_step(self, course: Course, total_steps: int | None) -> None:
        """After every step; must be cheap."""

    def on_look(self, measurements: Measurements) -> None:
        """Every few steps."""

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        """After each validation."""


class Referee(Protocol):
    """Somebody who may end a training after a validation, as a poor trial of a search."""

    def __call__(self, validations: Sequence[Validation], total_steps: int | None) -> str | None:
        """Why training is to end now, if it is. It can be continued later."""


def fit(
    module: TranslationModule,
    steps: TrainingSteps,
    validator: Validator,
    course: Course,
    ends: Ends,
    checkpoints: Checkpoints,
    listeners: Sequence[Listener],
    *,
    valid_every: int,
    trainer_options: dict[str, Any],
    optimizer_state: dict[str, Any] | None = None,
    crew: Crew | Alone = ALONE,
    referee: Referee | None = None,
) -> Outcome:
    """Train from `course.step` on; `course` and the checkpoints are up to date when this returns."""
    conductor = _Conductor(validator, course, ends, checkpoints, listeners, valid_every, optimizer_state, crew)
    conductor.referee = referee
    with _graceful_stop(conductor):
        _loop(module, steps, course, conductor, checkpoints.folder, trainer_options)
    return conductor.outcome


def follow(
    module: TranslationModule,
    steps: TrainingSteps,
    course: Course,
    follower: Follower,
    folder: Path,
    *,
    trainer_options: dict[str, Any],
    optimizer_state: dict[str, Any] | None,
) -> None:
    """Compute what is this process's share of each step, until process 0 says that it is over."""
    _loop(module, steps, course, _Following(follower, course, optimizer_state), folder, trainer_options)


def _loop(
    module: TranslationModule,
    steps: TrainingSteps,
    course: Course,
    callback: pl.Callback,
    folder: Path,
    trainer_options: dict[str, Any],
) -> None:
    """Lightning, in this process and on one device; `folder`: the run's own, where nobody else's checkpoints lie."""
    loader: DataLoader[list[Batch]] = DataLoader(
        steps,
        batch_size=None,
        sampler=range(course.step, len(steps)),
        # iter() draws from the loader's generator: with one of its own it leaves the default one alone.
        generator=torch.Generator(),
    )
    with _quiet():
        trainer = pl.Trainer(
            max_epochs=1,
            max_steps=len(steps) - course.step,
            callbacks=[callback],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            # Under Slurm it would start processes, requeue, and resume what any job has left in its folder.
            plugins=[LightningEnvironment()],
            default_root_dir=folder,
            **trainer_options,
        )
        # Lightning's answer to SIGTERM, after ours: by then the conductor has saved what a resume needs.
        with suppress(SIGTERMException):
            trainer.fit(module, loader)


class _Conductor(pl.Callback):
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
    ) -> None:
        self.validator, self.course, self.ends = validator, course, ends
        self.checkpoints, self.listeners = checkpoints, listeners
        self.valid_every, self.optimizer_state = valid_every, optimizer_state
        self.crew = crew
        self.outcome = Outcome("interrupted", "it had not begun")
        self.stop_asked = False
        self.referee: Referee | None = None
        self._last_look = (time.perf_counter(), 0)

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        _restore(module, self.optimizer_state)
        self.optimizer_state = None
        self._now = time.perf_counter()
        self._last_look = (self.course.train_seconds, self.course.tokens)

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: object, batch: list[Batch], batch_idx: int
    ) -> None:
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


class _Following(pl.Callback):
    """After each step waits to hear whether there is another."""

    def __init__(self, follower: Follower, course: Course, optimizer_state: dict[str, Any] | None) -> None:
        self.follower, self.course, self.optimizer_state = follower, course, optimizer_state

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        _restore(module, self.optimizer_state)
        self.optimizer_state = None

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: object, batch: list[Batch], batch_idx: int
    ) -> None:
        validations = self.follower.hear()
        if validations is None:
            trainer.should_stop = True
        else:
            self.course.validations += validations  # the learning rate may depend on them


def _restore(module: pl.LightningModule, optimizer_state: dict[str, Any] | None) -> None:
    if optimizer_state is not None:
        module.optimizers(use_pl_optimizer=False).load_state_dict(optimizer_state)


@contextmanager
def _graceful_stop(conductor: _Conductor) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM asks for a checkpoint and an end; the second ends at once."""

    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread alone
        return

    def ask(received: int, frame: object) -> None:
        conductor.stop_asked = True
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before: dict[int, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.getsignal(number)
        signal.signal(number, ask)
    try:
        yield
    finally:
        restore()


@contextmanager
def _quiet() -> Iterator[None]:
    """Lightning's talk about hardware and workers is not for this screen."""
    logger = logging.getLogger("pytorch_lightning")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        # Batches are made from arrays in memory; worker processes would only copy them.
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        warnings.filterwarnings("ignore", message=".*GPU available but not used.*")
        # Lightning 2.6 uses what torch 2.13 deprecates.
        warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)
        yield
    logger.setLevel(level)
