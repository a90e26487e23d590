"""A worker process of a run on several devices: it computes its share of each step and writes nothing."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch

from ablab.transformer.build import Trainable, build_objective, build_start, trainer_options
from ablab.transformer.training.module import TrainingModule
from ablab.transformer.training.trainer import fit_worker
from ablab.transformer.training.workers import Worker, follow


@dataclass(frozen=True)
class WorkerSpec:
    """What the first process sends to the workers. `step`: where all of them start. `threads`: of each of them."""

    trainable: Trainable[Any]
    checkpoints: Path
    step: int
    threads: int


def run_worker() -> NoReturn:
    """Train as process 0 asks, if it does, and exit as it does."""
    follow(_train)


def _train(spec: WorkerSpec, join: Callable[[bool], Worker]) -> None:
    config = spec.trainable.config
    torch.set_num_threads(spec.threads)
    start = build_start(spec.trainable, spec.checkpoints)
    if start.state.step != spec.step:
        raise RuntimeError(
            f"{spec.checkpoints} holds step {start.state.step} here, and step {spec.step} on the first device; "
            "allowed: a folder of outputs that all machines share"
        )
    worker = join(config.trainer.accelerator == "gpu")
    fit_worker(
        TrainingModule(start.model, build_objective(config, start.state), first_step=start.state.step, ranks=worker),
        start.steps,
        start.state,
        worker,
        spec.checkpoints,
        trainer_options=trainer_options(config, int(os.environ["LOCAL_RANK"])),
        optimizer_state=start.optimizer_state,
    )
