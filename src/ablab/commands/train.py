"""The `train` command: one run, or with -m a study of many."""

import signal
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ablab.code.machine import place, within_queue
from ablab.commands.habits import MANY, show, take_flags
from ablab.errors import DONE, INTERRUPTED, UserError

if TYPE_CHECKING:
    from ablab.tasks.task import Task


LEFT = "; where torchrun did not start this, unset RANK and WORLD_SIZE"


def train(arguments: Sequence[str]) -> int:
    """Plan the run that the words describe and do what is missing of it; with -m, do so for every run of a study."""
    began = time.perf_counter()
    rank, size = place()
    if rank > 0:
        # Process 0 alone handles signals sent to all; the imports, which take seconds, come later.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        _task(arguments).follow()
    arguments, shown = take_flags(arguments)
    if shown is not None:
        show(arguments, shown)
        return DONE
    if size > 1:
        return _task(arguments).lead(lambda: _lead(arguments, size, began))
    if any(word in MANY for word in arguments):
        from ablab.sweep.hydra import multirun

        return multirun([word for word in arguments if word not in MANY])
    return _train(arguments, size, began)


def _task(arguments: Sequence[str]) -> "Task":
    from ablab.tasks.registry import task_in_words

    return task_in_words(arguments)


def _lead(arguments: Sequence[str], size: int, began: float) -> int:
    """Train as rank 0 under torchrun. To torchrun, a checkpoint on request is no failure."""
    if any(word in MANY for word in arguments):
        raise UserError(f"-m: a study starts processes itself; allowed: without torchrun{LEFT}")
    code = _train(arguments, size, began)
    return DONE if code == INTERRUPTED else code


def _train(arguments: Sequence[str], size: int, began: float) -> int:
    from ablab.config import compose
    from ablab.run import run
    from ablab.tasks.plan import plan
    from ablab.tracking.console import Console
    from ablab.tracking.open import check

    composed = compose(arguments)
    if size not in (0, devices := composed.config.trainer.devices):
        raise UserError(f"trainer.devices={devices}: torchrun's WORLD_SIZE is {size}; allowed: {size}{LEFT}")
    planned = plan(composed)
    console = Console(bars=planned.config.trainer.progress)
    check(planned.config.logger, console.say)
    with within_queue():
        record = run(planned, console, began)
    return INTERRUPTED if record is None else DONE
