"""The laws of training: the rates that schedules give, and a run that is stopped and continued."""

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any

import torch

from ablab.config import compose
from ablab.files import sha256
from ablab.store.run_folder import SELECTED
from ablab.tasks.plan import PlannedRun, plan
from ablab.tracking.console import Console
from ablab.transformer.config.training import TransformerConfig
from ablab.transformer.model.place import Place
from ablab.transformer.model.transformer import TokenModel
from ablab.transformer.stages.builders import build_objective
from ablab.transformer.stages.callbacks import MetricsCallback
from ablab.transformer.stages.train import train
from ablab.transformer.training.callbacks import Callback, Callbacks
from ablab.transformer.training.module import StepConfig
from ablab.transformer.training.state import TrainingState
from ablab.transformer.translation.contracts.laws import BrokenError, Law, require
from ablab.transformer.translation.validation import TranslationValidation

LENGTHS = (None, 40, 2000)
"""Steps of trainings whose rates are asked for; None: of the run that is checked, which is short."""

DEPTHS = (None, 4, 6)
"""Layers of a stack, whose DropHead rates are asked for; None: of the model that is checked."""


def rates(config: TransformerConfig) -> None:
    """Ask for the rates of every step up to the last, and of some after it, in trainings of several lengths."""
    for steps in LENGTHS:
        _learning_rates(config if steps is None else _having(config, "training", max_steps=steps))
    stacks = [name for name in ("encoder_layers", "decoder_layers") if name in type(config.model).model_fields]
    for depth in DEPTHS:
        _drophead_rates(config if depth is None else _having(config, "model", **dict.fromkeys(stacks, depth)))


def _having(config: TransformerConfig, section: str, **values: int) -> TransformerConfig:
    return config.model_copy(update={section: getattr(config, section).model_copy(update=values)})


def _objective(config: TransformerConfig) -> StepConfig:
    return build_objective(config, TrainingState(validations=[TranslationValidation(1, loss=3.0, bleu=1.0)]))


def _learning_rates(config: TransformerConfig) -> None:
    objective, last = _objective(config), config.training.max_steps or 1000
    for step in (*range(1, last + 1), 2 * last, 100 * last):
        rate = objective.learning_rate(step)
        in_range = isfinite(rate) and 0 <= rate <= config.peak_rate * (1 + 1e-9)
        require(in_range, f"the learning rate at step {step} of {last} is {rate}, not from 0 to {config.peak_rate}")


def _drophead_rates(config: TransformerConfig) -> None:
    objective, last = _objective(config), config.training.max_steps or 1000
    most = config.drophead.own.get("p", 1.0)
    for place in _places(config):
        for step in (*range(1, last + 1), 2 * last, 100 * last):
            dropped = objective.drophead_rate(step, place)
            at = f"the DropHead rate at step {step}, {place.stack} layer {place.layer}"
            require(0 <= dropped <= most * (1 + 1e-9), f"{at}, is {dropped}, not from 0 to {most}")  # 0.2 * 3 / 3
            require(dropped == objective.drophead_rate(step, place), f"{at}, changes")


def _places(config: TransformerConfig) -> Iterator[Place]:
    """Yield every attention of the model."""
    encoder, decoder = (config.sizes[f"{stack}_layers"] for stack in ("encoder", "decoder"))
    for layer in range(1, encoder + 1):
        yield Place("encoder", layer, "self_attention")
    for layer in range(1, decoder + 1):
        yield Place("decoder", layer, "self_attention")
        if encoder:
            yield Place("decoder", layer, "cross_attention")


def steps(config: TransformerConfig, model: TokenModel) -> None:
    """Take a step of the optimiser where every other parameter of the model has a gradient."""
    objective = _objective(config)
    optimizer = objective.optimizer(list(model.named_parameters()))
    for group in optimizer.param_groups:
        group["lr"] = config.peak_rate
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for number, parameter in enumerate(model.parameters()):
        parameter.grad = torch.ones_like(parameter) if number % 2 else None
    optimizer.step()
    moved = {name for name, parameter in model.named_parameters() if not parameter.equal(before[name])}
    still = [name for name, parameter in model.named_parameters() if parameter.grad is None and name in moved]
    require(not still, f"{', '.join(still[:3])} moves without a gradient, as those of a dropped layer have none")
    require(bool(moved), "no parameter moves")
    stuck = [name for name, parameter in model.named_parameters() if parameter.grad is not None and name not in moved]
    require(not stuck, f"{', '.join(stuck[:3])} has a gradient and does not move")


class LawOfResume:
    """A run that is stopped halfway and continued ends with the weights of one that was not, bit for bit.

    `words`: of the run, which must be short.
    """

    def __init__(self, words: list[str]) -> None:
        self.words = words

    def __call__(self, config: object) -> None:
        with tempfile.TemporaryDirectory(prefix="ablab-check-") as folder:
            whole = self._trained(Path(folder) / "whole", stops=0)
            stopped = self._trained(Path(folder) / "stopped", stops=1)
        require(whole == stopped, "the weights of the continued run are others")

    def _trained(self, outputs: Path, stops: int) -> str:
        """Train, stopped so many times in the middle; return a digest of the selected weights."""
        planned: PlannedRun[Any] = plan(compose([*self.words, f"outputs={outputs}"]))
        steps = planned.config.training.max_steps or 2
        for left in range(stops, -1, -1):
            work = planned.task.prepared(planned, SilentConsole())
            metrics = MetricsCallback(planned.folder.metrics, SilentConsole().say)
            record = train(work, Callbacks([metrics, StopAt(steps // 2)] if left else [metrics]))
            require((record is None) == bool(left), "the run does not stop where it is asked to, or does not end")
        assert record is not None
        if record.selected is None:
            raise BrokenError(f"the run diverges: {record.reason}")
        return sha256(planned.folder.checkpoints / SELECTED)


class SilentConsole(Console):
    """A console that shows nothing."""

    def __init__(self) -> None:
        super().__init__(bars=False)

    def say(self, line: str) -> None:
        """Ignore the line."""


class StopAt(Callback):
    """Asks the training to stop after a step, as Ctrl-C does."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        """Send the signal once."""
        if state.step == self.step:
            os.kill(os.getpid(), signal.SIGINT)


def laws(words: list[str], build: Callable[[Any], TokenModel], *, of_optimiser: bool) -> tuple[Law, ...]:
    """Return the laws of training; `words` describe the run that is stopped and continued, `build` makes its model."""
    stepped = Law("a step moves what has a gradient, and nothing else", lambda config: steps(config, build(config)))
    own = [stepped] if of_optimiser else []
    return (
        *own,
        Law("every rate is a number in its range, at every step", rates),
        Law("a run that is stopped and continued ends with equal weights", LawOfResume(words)),
    )
