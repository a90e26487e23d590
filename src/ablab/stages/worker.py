"""A run on several devices, seen from all but the first: computes its share of each step, and writes nothing."""

from dataclasses import dataclass
from pathlib import Path

import torch

from ablab.build import build_objective, build_start, trainer_options
from ablab.config import Config
from ablab.data.prepared import Prepared
from ablab.store.saved_model import SavedModel
from ablab.training.module import TranslationModule
from ablab.training.trainer import follow as follow_steps
from ablab.training.workers import following


@dataclass(frozen=True)
class Order:
    """What the first process tells the others. `step`: where all of them start. `threads`: of each of them."""

    config: Config
    corpus: Path
    checkpoints: Path
    origin: SavedModel | None
    step: int
    threads: int


def follow() -> None:
    """From the order to the end of training."""
    with following() as (order, join):
        assert isinstance(order, Order)
        config = order.config
        torch.set_num_threads(order.threads)
        start = build_start(config, Prepared(order.corpus), order.checkpoints, order.origin)
        assert start.course.step == order.step, "the checkpoint has changed meanwhile"
        follower = join()
        follow_steps(
            TranslationModule(
                start.model, build_objective(config, start.course), first_step=start.course.step, ranks=follower
            ),
            start.steps,
            start.course,
            follower,
            order.checkpoints,
            trainer_options=trainer_options(config, follower.rank),
            optimizer_state=start.optimizer_state,
        )
