"""A worker process of a run on several devices: it computes its share of each step and writes nothing."""

from dataclasses import dataclass
from pathlib import Path

import torch

from ablab.build import build_objective, build_start, trainer_options
from ablab.config import Config
from ablab.data.prepared import Prepared
from ablab.store.saved_model import SavedModel
from ablab.training.module import TranslationModule
from ablab.training.trainer import fit_worker
from ablab.training.workers import joining


@dataclass(frozen=True)
class WorkerSpec:
    """What the first process sends to the workers. `step`: where all of them start. `threads`: of each of them."""

    config: Config
    corpus: Path
    checkpoints: Path
    origin: SavedModel | None
    step: int
    threads: int


def run_worker() -> None:
    """Receive the spec and train until the end."""
    with joining() as (spec, join):
        assert isinstance(spec, WorkerSpec)
        config = spec.config
        torch.set_num_threads(spec.threads)
        start = build_start(config, Prepared(spec.corpus), spec.checkpoints, spec.origin)
        assert start.state.step == spec.step, "the checkpoint has changed meanwhile"
        worker = join()
        fit_worker(
            TranslationModule(
                start.model, build_objective(config, start.state), first_step=start.state.step, ranks=worker
            ),
            start.steps,
            start.state,
            worker,
            spec.checkpoints,
            trainer_options=trainer_options(config, worker.rank),
            optimizer_state=start.optimizer_state,
        )
