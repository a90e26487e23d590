"""Builds the objects of training from the configuration, and says what a task brings to them."""

import abc
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from torch.optim import Optimizer

from ablab.code.code import code
from ablab.code.load import construct
from ablab.config.kinds import chosen_part
from ablab.errors import UserError
from ablab.store.run_folder import RunFolder
from ablab.tasks import identity
from ablab.transformer.config.training import TransformerConfig
from ablab.transformer.data.steps import AnySteps
from ablab.transformer.model.place import Place
from ablab.transformer.model.transformer import TokenModel
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.checkpoints import Checkpoints
from ablab.transformer.training.loss import TrainingLoss
from ablab.transformer.training.module import StepConfig
from ablab.transformer.training.optimisers import Named
from ablab.transformer.training.selection import Selection
from ablab.transformer.training.state import StopCriteria, TrainingState, ValidationSchedule
from ablab.transformer.training.validation import Validate, Validation

C = TypeVar("C", bound=TransformerConfig)

UNBOUNDED = 1 << 40
"""Number of steps of a training that neither steps nor epochs limit."""


def limit(steps: AnySteps, config: TransformerConfig) -> AnySteps:
    """Let there be as many steps as the limits on steps and epochs allow; returns the same object."""
    bounds = [config.training.max_steps or UNBOUNDED]
    if config.training.max_epochs is not None:  # of an epoch there is a step at least: more of them are not counted
        bounds.append(steps.steps_in(min(config.training.max_epochs, bounds[0])))
    steps.total = min(bounds)
    return steps


def build_objective(config: TransformerConfig, state: TrainingState) -> StepConfig:
    """Build the settings of an optimiser step: loss, optimiser, gradient clipping and rates by step."""
    return StepConfig(
        seed=config.seed,
        loss=_loss(config),
        learning_rate=_learning_rate(config, state),
        drophead_rate=_drophead_rate(config),
        optimizer=partial(_optimizer, config),
        clip=config.optim.clip,
    )


def _loss(config: TransformerConfig) -> TrainingLoss:
    facts = {**config.sizes, "label_smoothing": config.training.label_smoothing}
    loss: TrainingLoss = construct(chosen_part(config.loss), {**facts, **config.loss.own})
    return loss


def _optimizer(config: TransformerConfig, parameters: Named) -> Optimizer:
    facts = {**config.sizes, "parameters": parameters}
    made = construct(chosen_part(config.optim), {**facts, **config.optim.own})
    optimizer = made if isinstance(made, Optimizer) else made()
    if not isinstance(optimizer, Optimizer):
        raise UserError(
            f"optim={config.optim.kind} is a {type(optimizer).__name__}; allowed: an optimiser of torch.optim"
        )
    return optimizer


def _drophead_rate(config: TransformerConfig) -> Callable[[int, Place], float]:
    """Return the rate by step and place, made once for each place."""
    part = chosen_part(config.drophead)

    @cache
    def at(place: Place) -> Callable[[int], float]:
        facts = {**config.sizes, **place._asdict()}
        rate: Callable[[int], float] = construct(part, {**facts, **config.drophead.own})
        return rate

    return lambda step, place: float(at(place)(step))


def _learning_rate(config: TransformerConfig, state: TrainingState) -> Callable[[int], float]:
    schedule = _schedule(config)
    if isinstance(schedule, ValidationSchedule):
        return lambda step: float(schedule.rate(step, state.validations))
    return lambda step: float(schedule(step))


def _schedule(config: TransformerConfig) -> ValidationSchedule | Callable[[int], float]:
    facts = {**config.sizes, "peak": config.peak_rate, "total": config.training.max_steps}
    own = config.schedule.own
    schedule: ValidationSchedule | Callable[[int], float] = construct(chosen_part(config.schedule), {**facts, **own})
    return schedule


def build_ends(config: TransformerConfig, steps: AnySteps) -> StopCriteria:
    """Build the criteria that end training."""
    training, schedule = config.training, _schedule(config)
    return StopCriteria(
        total_steps=len(steps) if steps.total < UNBOUNDED else None,
        max_seconds=None if training.max_minutes is None else 60 * training.max_minutes,
        patience=training.patience,
        monitor=config.monitor,
        schedule=schedule if isinstance(schedule, ValidationSchedule) else None,
    )


def build_checkpoints(config: TransformerConfig, folder: Path) -> Checkpoints:
    """Build the run's checkpoints in `folder`, with their selection rule."""
    training = config.training
    every = training.average_every or training.valid_every
    minutes = config.trainer.checkpoint_every
    return Checkpoints(
        folder,
        Selection(training.select, config.monitor, training.average_last, every),
        seconds_apart=None if minutes is None else 60 * minutes,
        code=code("training", identity.recipe(config)),
    )


def trainer_options(config: TransformerConfig, rank: int = 0) -> dict[str, Any]:
    """Return Lightning's Trainer arguments: precision, and the one device of process `rank`."""
    precision = {"fp32": "32-true", "bf16": "bf16-mixed"}[config.training.precision]
    return {
        "accelerator": config.trainer.accelerator,
        "devices": [rank] if config.trainer.accelerator == "gpu" else 1,
        "precision": precision,
    }


class Trainable(abc.ABC, Generic[C]):
    """What a task brings to a training, once its data are prepared. The other processes of a run get it pickled.

    `validation`: the class of its validations.
    """

    validation: ClassVar[type[Validation]]
    config: C

    @abc.abstractmethod
    def model(self) -> TokenModel:
        """Build the model, with the weights that training starts from."""

    @abc.abstractmethod
    def steps(self) -> AnySteps:
        """Build the training data by step, without a limit on the number of steps: `UNBOUNDED`."""

    @abc.abstractmethod
    def validator(self, first: int | None = None) -> Validate:
        """Build what validates; `first`: on so many items alone, for a dry run."""

    @abc.abstractmethod
    def save(self, checkpoints: Path) -> None:
        """Write beside the weights what they cannot be used without, such as tokenizers."""

    @property
    @abc.abstractmethod
    def data(self) -> Mapping[str, Any]:
        """What the record says of the data; `unigram_loss` is the validation loss of word frequencies alone."""

    @property
    @abc.abstractmethod
    def amount(self) -> str:
        """How much there is to train on, in words."""

    @property
    @abc.abstractmethod
    def tokens_of_epoch(self) -> int:
        """The predicted tokens of an epoch."""

    @abc.abstractmethod
    def flops_per_token(self, model: Any, shares: Mapping[str, Sequence[float]]) -> float:
        """Return the operations of training for each predicted token; `shares`: of it, for which each layer ran."""

    def recorded(self, validation: Any) -> dict[str, float]:
        """Return the scores of a validation that a record holds."""
        scores: dict[str, float] = validation.scores
        return scores

    def callbacks(self, model: Any, folder: RunFolder, callbacks: Callback) -> list[Callback]:
        """Return the task's own callbacks during training, which may tell `callbacks` of pictures."""
        return []
