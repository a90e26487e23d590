"""The Lightning module of training: the optimiser, the training step and its report; and the Trainer that runs it."""

import logging
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.environments import LightningEnvironment
from torch import Tensor
from torch.utils.data import DataLoader

from ablab.errors import UserError
from ablab.transformer.data.batches import MicroBatch
from ablab.transformer.data.steps import AnySteps
from ablab.transformer.model.dropout import DropHead
from ablab.transformer.model.place import Place
from ablab.transformer.model.streams import reseed
from ablab.transformer.model.transformer import TokenModel
from ablab.transformer.training.distributed import ALONE, Ranks
from ablab.transformer.training.loss import TokenLoss, TrainingLoss
from ablab.transformer.training.optimisers import Named


@dataclass(frozen=True)
class StepConfig:
    """Settings of an optimiser step, apart from model and data. Rates are functions of the step >= 1.

    `drophead_rate`: of the step and of the place of the attention. `optimizer`: makes the optimiser of the parameters.
    """

    seed: int
    loss: TrainingLoss
    learning_rate: Callable[[int], float]
    drophead_rate: Callable[[int, Place], float]
    optimizer: Callable[[Named], torch.optim.Optimizer]
    clip: float | None


@dataclass
class StepReport:
    """The results of one optimiser step. Tensors stay on the device until read.

    `drophead`: the largest rate of any attention. `ran`: by stack, which layers ran.
    """

    step: int
    loss: Tensor
    tokens: int
    grad_norm: Tensor
    learning_rate: float
    drophead: float
    ran: dict[str, list[bool]]


class TrainingModule(pl.LightningModule):
    """A Lightning module whose training batch is one optimiser step of one or more micro-batches.

    Optimisation is manual, as Lightning would weight micro-batches equally: here the loss of a step is the sum over
    its target tokens divided by their number, however the step is split into micro-batches and over processes.
    """

    automatic_optimization = False

    def __init__(self, model: TokenModel, objective: StepConfig, first_step: int = 0, ranks: Ranks = ALONE) -> None:
        super().__init__()
        self.model = model
        self.objective = objective
        self.first_step = first_step
        self.ranks = ranks
        self.report: StepReport | None = None

    @property
    def step(self) -> int:
        """Number of optimiser steps taken, including those before a resume."""
        return self.first_step + self.global_step

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimiser; its learning rate is set before each step."""
        return self.objective.optimizer(list(self.model.named_parameters()))

    def transfer_batch_to_device(
        self, batch: list[MicroBatch], device: torch.device, dataloader_idx: int
    ) -> list[MicroBatch]:
        """Transfer the micro-batches that this process computes; of the others it needs only the lengths."""
        mine = self.ranks.mine(len(batch))
        return [
            super(TrainingModule, self).transfer_batch_to_device(part, device, dataloader_idx) if i in mine else part
            for i, part in enumerate(batch)
        ]

    def training_step(self, micro_batches: list[MicroBatch], index: int) -> None:
        """Seed and run forward and backward for each micro-batch of this process; then sum gradients, clip and step."""
        step = self.step + 1
        objective = self.objective
        optimizer = self.optimizers()
        rate = objective.learning_rate(step)
        if not 0 <= rate < math.inf:
            raise UserError(f"the learning rate at step {step:,} is {rate}; allowed: numbers from 0")
        for group in optimizer.param_groups:
            group["lr"] = rate
        drophead = self._set_drophead(step)

        tokens = sum(batch.tokens for batch in micro_batches)
        total = torch.zeros((), device=self.device)
        for part in self.ranks.mine(len(micro_batches)):
            reseed(self.model, objective.seed, step=step, micro_batch=part)
            loss = objective.loss(self.model, micro_batches[part])
            if not isinstance(loss, TokenLoss):
                raise UserError(f"the loss is a {type(loss).__name__}; allowed: a TokenLoss")
            self.manual_backward(loss.total / tokens)
            total += loss.true.detach() / tokens
        self.ranks.add_up(list(self.model.parameters()), total)
        grad_norm = torch.nn.utils.clip_grad_norm_(
            self.model.parameters(), float("inf") if objective.clip is None else objective.clip
        )
        optimizer.step()
        ran = self._ran()
        # None, not zero: Adam must not step a layer that LayerDrop left out of the next step. Of the model, not of the
        # optimiser: gradients of what that leaves out would pile up, and count when all are clipped.
        self.model.zero_grad(set_to_none=True)
        self.report = StepReport(step, total, tokens, grad_norm, rate, drophead, ran)

    def _ran(self) -> dict[str, list[bool]]:
        """Return which layers have gradients: not those dropped, nor an encoder that no decoder layer attended to."""
        return {
            name: [any(parameter.grad is not None for parameter in layer.parameters()) for layer in layers]
            for name, layers in self.model.stacks.items()
        }

    def _set_drophead(self, step: int) -> float:
        """Set the rate of each attention; return the largest."""
        sites = [module for module in self.model.modules() if isinstance(module, DropHead)]
        for site in sites:
            site.drop_prob = rate = self.objective.drophead_rate(step, site.place)
            if not 0 <= rate <= 1:
                raise UserError(f"the DropHead rate at step {step:,} is {rate}; allowed: from 0 to 1")
        return max((site.drop_prob for site in sites), default=0.0)


def run_steps(
    module: TrainingModule,
    steps: AnySteps,
    callback: pl.Callback,
    folder: Path,
    trainer_options: dict[str, Any],
) -> None:
    """Run Lightning's Trainer in this process on one device; `folder` holds only this run's checkpoints."""
    loader: DataLoader[list[MicroBatch]] = DataLoader(
        steps,
        batch_size=None,
        sampler=range(module.first_step, len(steps)),
        # iter() draws from the loader's generator; one of its own leaves the default generator unchanged.
        generator=torch.Generator(),
        # From pageable memory, a copy waits until the device has done all that was launched before it.
        pin_memory=trainer_options["accelerator"] == "gpu",
    )
    with _quiet():
        trainer = _Trainer(
            max_epochs=1,
            max_steps=len(steps) - module.first_step,
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
        # Told wherever Slurm is installed, login nodes included; a launcher of ours starts what is to run there.
        warnings.filterwarnings("ignore", message=".*`srun` command is available.*")
        # Lightning 2.6 uses what torch 2.13 deprecates.
        warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)
        yield
    logger.setLevel(level)
