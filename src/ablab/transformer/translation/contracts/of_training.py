"""The laws of training: the rates that schedules give, and a run that is stopped and continued."""

import os
import signal
import tempfile
from math import isfinite
from pathlib import Path
from typing import Any

from ablab.config import compose
from ablab.files import sha256
from ablab.store.run_folder import SELECTED
from ablab.tasks.plan import PlannedRun, plan
from ablab.tracking.console import Console
from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.model.place import Place
from ablab.transformer.stages.builders import build_objective
from ablab.transformer.stages.callbacks import MetricsCallback
from ablab.transformer.stages.train import train
from ablab.transformer.training.callbacks import Callback, Callbacks
from ablab.transformer.training.state import TrainingState
from ablab.transformer.translation.contracts.laws import BrokenError, Law, require
from ablab.transformer.translation.validation import TranslationValidation

PLACES = (Place("encoder", 1, "self_attention"), Place("decoder", 2, "cross_attention"))


def rates(config: TranslationConfig) -> None:
    """Ask for the rates of every step up to the last, and of some after it."""
    objective = build_objective(config, TrainingState(validations=[TranslationValidation(1, loss=3.0, bleu=1.0)]))
    last = config.training.max_steps or 1000
    most = config.drophead.own.get("p", 1.0)
    for step in (*range(1, last + 1), 2 * last):
        rate = objective.learning_rate(step)
        require(isinstance(rate, float | int), f"the learning rate at step {step} of {last} is {rate!r}, no number")
        in_range = isfinite(rate) and 0 <= rate <= config.peak_rate * (1 + 1e-9)
        require(in_range, f"the learning rate at step {step} of {last} is {rate}, not from 0 to {config.peak_rate}")
        for place in PLACES:
            dropped = objective.drophead_rate(step, place)
            require(0 <= dropped <= most, f"the DropHead rate at step {step} is {dropped}, not from 0 to {most}")
            require(dropped == objective.drophead_rate(step, place), f"the DropHead rate at step {step} changes")


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


def laws(words: list[str]) -> tuple[Law, ...]:
    """Return the laws of training; `words` describe the run that is stopped and continued."""
    return (
        Law("every rate is a number in its range, at every step", rates),
        Law("a run that is stopped and continued ends with equal weights", LawOfResume(words)),
    )
