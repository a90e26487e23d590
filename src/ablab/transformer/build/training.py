"""Builds the objects of training and evaluation from the configuration."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from torch.optim import Optimizer

from ablab.code.code import code
from ablab.code.load import construct
from ablab.config.kinds import chosen_part
from ablab.transformer.build.model import build_model, start_from
from ablab.transformer.config.recipe import recipe
from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.data.prepared import Prepared
from ablab.transformer.data.steps import TrainingSteps
from ablab.transformer.decoding.translator import DecodingConfig
from ablab.transformer.model.place import Place
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.pruning.saved_model import SavedModel
from ablab.transformer.training.checkpoints import Checkpoints
from ablab.transformer.training.compile import compile_layers
from ablab.transformer.training.loss import TrainingLoss
from ablab.transformer.training.module import StepConfig
from ablab.transformer.training.optimisers import Named
from ablab.transformer.training.selection import Selection
from ablab.transformer.training.state import StopCriteria, TrainingState, ValidationSchedule

UNBOUNDED = 1 << 40
"""Number of steps of a training that neither steps nor epochs limit."""


def build_steps(config: TranslationConfig, prepared: Prepared) -> TrainingSteps:
    """Build the training data by step, with as many steps as the limits on steps and epochs allow."""
    src, tgt = prepared.train
    steps = TrainingSteps(
        src,
        tgt,
        batch_tokens=config.optim.batch_tokens,
        seed=config.seed,
        micro_batches=config.trainer.micro_batches,
        total=UNBOUNDED,
    )
    bounds = [config.training.max_steps or UNBOUNDED]
    if config.training.max_epochs is not None:
        bounds.append(steps.steps_in(config.training.max_epochs))
    steps.total = min(bounds)
    return steps


def build_objective(config: TranslationConfig, state: TrainingState) -> StepConfig:
    """Build the settings of an optimiser step: loss, optimiser, gradient clipping and rates by step."""
    return StepConfig(
        seed=config.seed,
        loss=_loss(config),
        learning_rate=_learning_rate(config, state),
        drophead_rate=_drophead_rate(config),
        optimizer=partial(_optimizer, config),
        clip=config.optim.clip,
    )


def _loss(config: TranslationConfig) -> TrainingLoss:
    facts = {**config.model.sizes, "label_smoothing": config.training.label_smoothing}
    loss: TrainingLoss = construct(chosen_part(config.loss), {**facts, **config.loss.own})
    return loss


def _optimizer(config: TranslationConfig, parameters: Named) -> Optimizer:
    facts = {**config.model.sizes, "parameters": parameters}
    made = construct(chosen_part(config.optim), {**facts, **config.optim.own})
    optimizer: Optimizer = made if isinstance(made, Optimizer) else made()
    return optimizer


def _drophead_rate(config: TranslationConfig) -> Callable[[int, Place], float]:
    """Return the rate by step and place, made once for each place."""
    part = chosen_part(config.drophead)

    @cache
    def at(place: Place) -> Callable[[int], float]:
        facts = {**config.model.sizes, **place._asdict()}
        rate: Callable[[int], float] = construct(part, {**facts, **config.drophead.own})
        return rate

    return lambda step, place: at(place)(step)


def _learning_rate(config: TranslationConfig, state: TrainingState) -> Callable[[int], float]:
    schedule = _schedule(config)
    if isinstance(schedule, ValidationSchedule):
        return lambda step: schedule.rate(step, state.validations)
    return schedule


def _schedule(config: TranslationConfig) -> ValidationSchedule | Callable[[int], float]:
    facts = {**config.model.sizes, "peak": config.peak_rate, "total": config.training.max_steps}
    own = config.schedule.own
    schedule: ValidationSchedule | Callable[[int], float] = construct(chosen_part(config.schedule), {**facts, **own})
    return schedule


def build_ends(config: TranslationConfig, steps: TrainingSteps) -> StopCriteria:
    """Build the criteria that end training."""
    training, schedule = config.training, _schedule(config)
    return StopCriteria(
        total_steps=len(steps) if steps.total < UNBOUNDED else None,
        max_seconds=None if training.max_minutes is None else 60 * training.max_minutes,
        patience=training.patience,
        monitor=training.monitor,
        schedule=schedule if isinstance(schedule, ValidationSchedule) else None,
    )


def build_checkpoints(config: TranslationConfig, folder: Path) -> Checkpoints:
    """Build the run's checkpoints in `folder`, with their selection rule."""
    training = config.training
    every = training.average_every or training.valid_every
    minutes = config.trainer.checkpoint_every
    return Checkpoints(
        folder,
        Selection(training.select, training.monitor, training.average_last, every),
        seconds_apart=None if minutes is None else 60 * minutes,
        code=code("training", recipe(config)),
    )


def build_search(config: TranslationConfig) -> DecodingConfig:
    """Build the decoding settings for the test set."""
    decoding = config.decoding
    return DecodingConfig(decoding.beam_size, decoding.length_penalty, config.test_extra_tokens)


def trainer_options(config: TranslationConfig, rank: int = 0) -> dict[str, Any]:
    """Return Lightning's Trainer arguments: precision, and the one device of process `rank`."""
    precision = {"fp32": "32-true", "bf16": "bf16-mixed"}[config.training.precision]
    return {
        "accelerator": config.trainer.accelerator,
        "devices": [rank] if config.trainer.accelerator == "gpu" else 1,
        "precision": precision,
    }


@dataclass
class Start:
    """The objects from which training starts or continues. `optimizer_state` is None at step 0."""

    model: Transformer
    steps: TrainingSteps
    state: TrainingState
    checkpoints: Checkpoints
    optimizer_state: dict[str, Any] | None


def build_start(config: TranslationConfig, prepared: Prepared, folder: Path, origin: SavedModel | None) -> Start:
    """Start from the last checkpoint in `folder`, else from the weights of `origin`, else from initial weights."""
    src_vocab, tgt_vocab = prepared.manifest["vocab"]
    model = build_model(config, src_vocab=src_vocab, tgt_vocab=tgt_vocab)
    if origin is not None:
        start_from(model, origin)
    checkpoints = build_checkpoints(config, folder)
    state, optimizer_state = TrainingState(), None
    if (last := checkpoints.load_last()) is not None:
        state, optimizer_state = TrainingState.from_dict(last["course"]), last["optimizer"]
        model.load_state_dict(last["model"])
    if config.trainer.compile:
        compile_layers(model)
    return Start(model, build_steps(config, prepared), state, checkpoints, optimizer_state)
