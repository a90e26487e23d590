"""The dry run of a configuration: build the model, train a few steps and decode one sentence."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from ablab.transformer.build import (
    build_checkpoints,
    build_ends,
    build_model,
    build_objective,
    build_steps,
    check_devices,
    set_threads,
)
from ablab.transformer.build.training import trainer_options
from ablab.transformer.config.schema import PlannedTranslation
from ablab.transformer.data.prepared import Prepared, prepare
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.cost import parameter_count
from ablab.transformer.training.distributed import FirstOfMany
from ablab.transformer.training.module import TranslationModule
from ablab.transformer.training.state import StopCriteria, TrainingState
from ablab.transformer.training.trainer import fit
from ablab.transformer.training.validation import Validator

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


class _Glance(Validator):
    """Validation of one pair."""

    def __init__(self, prepared: Prepared) -> None:
        super().__init__(prepared)
        self.src, self.tgt = self.src.first(1), self.tgt.first(1)
        self.references = self.references[:1]


def dry_run(planned: PlannedTranslation, steps: int = STEPS) -> DryRun:
    """Try out `steps` steps of a run on its own data, model and batch size; only the prepared corpus is kept.

    Of several devices, only the first computes its share, so that the time excludes the cost of adding gradients up.
    """
    config = planned.config
    set_threads(config.trainer, processes=config.trainer.devices)
    check_devices(config.trainer)
    prepared = prepare(config.data, planned.outputs / "corpora", lambda _: None)
    src_vocab, tgt_vocab = prepared.manifest["vocab"]
    model = build_model(config, src_vocab=src_vocab, tgt_vocab=tgt_vocab)
    batches, state, clock = build_steps(config, prepared), TrainingState(), _Clock()
    whole = build_ends(config, batches).total_steps
    batches.total = min(batches.total, steps)
    ends = StopCriteria(total_steps=steps, max_seconds=None, patience=None, monitor="loss", schedule=None)
    with tempfile.TemporaryDirectory() as folder:
        outcome = fit(
            TranslationModule(model, build_objective(config, state), ranks=FirstOfMany(config.trainer.devices)),
            batches,
            _Glance(prepared),
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
