"""The dry run of a configuration: build the model, train a few steps and validate one item."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ablab.transformer.stages.builders import (
    Trainable,
    build_checkpoints,
    build_ends,
    build_objective,
    limit,
    trainer_options,
)
from ablab.transformer.stages.models import check_devices, set_threads
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.cost import parameter_count
from ablab.transformer.training.distributed import FirstOfMany
from ablab.transformer.training.loop import fit
from ablab.transformer.training.module import TrainingModule
from ablab.transformer.training.state import StopCriteria, TrainingState

STEPS = 3
"""The first step is slow, as memory is allocated and kernels are chosen; only the others are timed."""


@dataclass(frozen=True)
class DryRun:
    """The result of a dry run. `total_steps`: of the whole training; None if steps do not bound it."""

    parameters: int
    seconds_per_step: float
    total_steps: int | None


class _Clock(Callback):
    """Records when each step has ended, on the device too."""

    def __init__(self) -> None:
        self._times = [time.perf_counter()]

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self._times.append(time.perf_counter())

    @property
    def seconds_per_step(self) -> float:
        """The mean without the first step, unless there is no other."""
        counted = self._times[1:] if len(self._times) > 2 else self._times
        return (counted[-1] - counted[0]) / (len(counted) - 1)


def dry_run(trainable: Trainable[Any], steps: int = STEPS) -> DryRun:
    """Try out `steps` steps of a run on its own data, model and batch size.

    Of several devices, only the first computes its share, so that the time excludes the cost of adding gradients up.
    """
    config = trainable.config
    set_threads(config.trainer, processes=config.trainer.devices)
    check_devices(config.trainer)
    model, state, clock = trainable.model(), TrainingState(kind=trainable.validation), _Clock()
    batches = limit(trainable.steps(), config)
    whole = build_ends(config, batches).total_steps
    batches.total = min(batches.total, steps)
    ends = StopCriteria(total_steps=steps, max_seconds=None, patience=None, monitor="loss", schedule=None)
    with tempfile.TemporaryDirectory() as folder:
        outcome = fit(
            TrainingModule(model, build_objective(config, state), ranks=FirstOfMany(config.trainer.devices)),
            batches,
            trainable.validator(first=1),
            state,
            ends,
            build_checkpoints(config, Path(folder)),
            clock,
            valid_every=steps,
            trainer_options=trainer_options(config),
        )
    if outcome.state == "diverged":
        raise FloatingPointError(outcome.reason)
    return DryRun(parameter_count(model), clock.seconds_per_step, whole)
