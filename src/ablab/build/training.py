"""Builds the objects of training and evaluation from the configuration."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ablab.build.model import build_model, start_from
from ablab.config import Config, options
from ablab.config.options import Optim
from ablab.data.batches import TrainingSteps
from ablab.data.prepared import Prepared
from ablab.decoding.translator import DecodingConfig
from ablab.model.transformer import Transformer
from ablab.store.saved_model import SavedModel
from ablab.training.checkpoints import Checkpoints, Selection
from ablab.training.compile import compile_layers
from ablab.training.module import StepConfig
from ablab.training.optimisers import OPTIMISERS
from ablab.training.schedules import DROP_SCHEDULES, cosine, inverse_sqrt, wsd
from ablab.training.state import Plateau, StopCriteria, TrainingState

UNBOUNDED = 1 << 40
"""Number of steps of a training that neither steps nor epochs limit."""


def build_steps(config: Config, prepared: Prepared) -> TrainingSteps:
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


def build_objective(config: Config, state: TrainingState) -> StepConfig:
    """Build the settings of an optimiser step: label smoothing, optimiser, gradient clipping and rates by step."""
    optim, drophead = config.optim, config.drophead
    own = {name: value for name, value in optim.own.items() if name not in Optim.model_fields}
    schedule = DROP_SCHEDULES[drophead.kind]
    rates = {name: value for name, value in drophead.own.items() if name != "sites"}  # the model reads the sites
    return StepConfig(
        seed=config.seed,
        label_smoothing=config.training.label_smoothing,
        learning_rate=LEARNING_RATES[config.schedule.kind](config, state),
        drophead_rate=lambda step: schedule(step, **rates),
        make_optimizer=partial(OPTIMISERS[optim.kind], **own),
        clip=optim.clip,
    )


Rate = Callable[[int], float]
"""A function from the step to its learning rate."""


def _noam(config: Config, state: TrainingState) -> Rate:
    return partial(inverse_sqrt, peak=config.peak_rate, **config.schedule.own)


def _cosine(config: Config, state: TrainingState) -> Rate:
    total = config.training.max_steps
    assert total is not None  # config.rules requires it
    return partial(cosine, total=total, peak=config.peak_rate, **config.schedule.own)


def _wsd(config: Config, state: TrainingState) -> Rate:
    total = config.training.max_steps
    assert total is not None  # config.rules requires it
    return partial(wsd, total=total, peak=config.peak_rate, **config.schedule.own)


def _by_validation(config: Config, state: TrainingState) -> Rate:
    plateau = _plateau(config)
    assert plateau is not None
    return lambda step: plateau.rate(state)


LEARNING_RATES: dict[str, Callable[[Config, TrainingState], Rate]] = {
    "noam": _noam,
    "cosine": _cosine,
    "wsd": _wsd,
    "plateau": _by_validation,
}


def _plateau(config: Config) -> Plateau | None:
    schedule = config.schedule
    if not isinstance(schedule, options.Plateau):
        return None
    return Plateau(
        monitor=schedule.decay_monitor,
        peak=config.peak_rate,
        decay=schedule.decay,
        patience=schedule.decay_patience,
        min_rate=schedule.min_lr,
    )


def build_ends(config: Config, steps: TrainingSteps) -> StopCriteria:
    """Build the criteria that end training."""
    training = config.training
    return StopCriteria(
        total_steps=len(steps) if steps.total < UNBOUNDED else None,
        max_seconds=None if training.max_minutes is None else 60 * training.max_minutes,
        patience=training.patience,
        monitor=training.monitor,
        plateau=_plateau(config),
    )


def build_checkpoints(config: Config, folder: Path) -> Checkpoints:
    """Build the run's checkpoints in `folder`, with their selection rule."""
    training = config.training
    every = training.average_every or training.valid_every
    minutes = config.trainer.checkpoint_every
    return Checkpoints(
        folder,
        Selection(training.select, training.monitor, training.average_last, every),
        seconds_apart=None if minutes is None else 60 * minutes,
    )


def build_search(config: Config) -> DecodingConfig:
    """Build the decoding settings for the test set."""
    decoding = config.decoding
    return DecodingConfig(decoding.beam_size, decoding.length_penalty, decoding.max_extra_tokens)


def trainer_options(config: Config, rank: int = 0) -> dict[str, Any]:
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


def build_start(config: Config, prepared: Prepared, folder: Path, origin: SavedModel | None) -> Start:
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
