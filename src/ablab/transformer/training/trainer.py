"""Entry points of training, for process 0 and for workers; Lightning runs the steps."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.environments import LightningEnvironment
from torch.utils.data import DataLoader

from ablab.code.machine import graceful_stop
from ablab.transformer.data.batches import MicroBatch
from ablab.transformer.data.steps import AnySteps
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.checkpoints import Checkpoints
from ablab.transformer.training.cost import ProductTimer
from ablab.transformer.training.distributed import ALONE, SingleProcess
from ablab.transformer.training.loop import TrainingLoop, TrainingResult, WorkerLoop
from ablab.transformer.training.module import TrainingModule
from ablab.transformer.training.state import StopCriteria, TrainingState
from ablab.transformer.training.validation import Validate
from ablab.transformer.training.workers import Worker, WorkerGroup


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
        _loop(module, steps, state, loop, checkpoints.folder, trainer_options)
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
    _loop(module, steps, state, WorkerLoop(worker, state, optimizer_state), folder, trainer_options)


def _loop(
    module: TrainingModule,
    steps: AnySteps,
    state: TrainingState,
    callback: pl.Callback,
    folder: Path,
    trainer_options: dict[str, Any],
) -> None:
    """Run Lightning's Trainer in this process on one device; `folder` holds only this run's checkpoints."""
    loader: DataLoader[list[MicroBatch]] = DataLoader(
        steps,
        batch_size=None,
        sampler=range(state.step, len(steps)),
        # iter() draws from the loader's generator; one of its own leaves the default generator unchanged.
        generator=torch.Generator(),
    )
    with _quiet():
        trainer = _Trainer(
            max_epochs=1,
            max_steps=len(steps) - state.step,
            callbacks=[callback],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            # Under Slurm, Lightning would otherwise start processes, requeue, and resume what any job left there.
            plugins=[LightningEnvironment()],
            default_root_dir=folder,
            **trainer_options,
        )
        try:
            trainer.fit(module, loader)
        except SystemExit as error:
            if isinstance(error.__context__, KeyboardInterrupt):  # Lightning exits with 1, as if training had failed
                raise error.__context__ from None
            raise


class _Trainer(pl.Trainer):
    """A Trainer that SIGTERM does not end: the training loop does, once the step is saved, and for all workers."""

    @property
    def received_sigterm(self) -> bool:
        """Return False: Lightning would raise an error after any step, also after one that is not saved."""
        return False


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Lightning's messages about hardware and workers."""
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
