"""The Lightning module of training: the optimiser, the training step and its report."""

from collections.abc import Callable
from dataclasses import dataclass

import pytorch_lightning as pl
import torch
from torch import Tensor

from ablab.errors import UserError
from ablab.transformer.data.batches import MicroBatch
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
        # None, not zero: Adam must not step a layer that LayerDrop left out of the next step.
        optimizer.zero_grad(set_to_none=True)
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
            site.drop_prob = self.objective.drophead_rate(step, site.place)
        return max((site.drop_prob for site in sites), default=0.0)
