"""Start or continuation of a training in this process: its threads, and whether it may continue the checkpoint."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ablab.code.code import code_digest
from ablab.code.differences import RecordedCode, numerical_versions, of_other_version, other_code, other_versions
from ablab.code.machine import processor
from ablab.config.schema import Trainer
from ablab.errors import OtherCodeError
from ablab.store.records import Stretch, mixture
from ablab.text import Say
from ablab.transformer.config.training import TransformerConfig
from ablab.transformer.stages.models import set_threads
from ablab.transformer.training.checkpoints import load_last
from ablab.transformer.training.state import TrainingState

WAYS_ON = "mixed=true (it goes on, and is marked) or rerun=true (it begins anew)"


def begin_stretch(
    config: TransformerConfig, run_id: str, recipe: Mapping[str, Any], checkpoints: Path, say: Say
) -> Stretch:
    """Set the number of threads and return the stretch of training that begins.

    The threads are those of the checkpoint unless the configuration gives a number. Raises OtherCodeError if the
    checkpoint was computed with other code, libraries or threads, unless mixed=true. Code whose digest is of an older
    version is no other code: nothing tells.
    """
    last = load_last(checkpoints, mapped=True, say=say)
    # Its validations, whose scores are the task's, are not needed here.
    state = TrainingState() if last is None else TrainingState.from_dict({**last["course"], "validations": []})
    before = state.stretches[-1] if state.stretches else None
    _take_threads(config.trainer, before)
    began_from = None if last is None else last["sha256"]
    stretch = _stretch(config.trainer, code_digest("training", recipe), state.step, began_from)
    if before is not None and (older := of_other_version(before.code)) is not None:
        say(f"{run_id} stands at step {state.step:,} by {older}: it goes on")
    if last is not None and (other := _other(config.trainer, recipe, last, before, stretch)) is not None:
        if not config.mixed:
            raise OtherCodeError(f"mixed=false: {run_id} stands at step {state.step:,} {other}; allowed: {WAYS_ON}")
        say(f"{run_id} stands at step {state.step:,} {other}: it goes on, and is marked")
    elif before is not None and (changed := mixture([before, stretch])) is not None:
        say(f"{run_id} stands at step {state.step:,}, and {changed} changed since: it goes on, and is marked")
    return stretch


def _take_threads(trainer: Trainer, before: Stretch | None) -> None:
    """Set the number of threads, on a CPU by default to that of the stretch `before`.

    Rounding on a CPU depends on the threads of each process, however many processes share a step; on a GPU it does not.
    """
    set_threads(trainer, processes=trainer.devices)
    if trainer.threads is None and before is not None and trainer.accelerator == "cpu":
        torch.set_num_threads(before.threads)


def _stretch(trainer: Trainer, code: str, step: int, began_from: str | None) -> Stretch:
    return Stretch(
        code=code,
        versions=numerical_versions(),
        threads=torch.get_num_threads(),
        device=torch.cuda.get_device_name() if trainer.accelerator == "gpu" else processor(),
        devices=trainer.devices,
        micro_batches=trainer.micro_batches,
        compile=trainer.compile,
        first_step=step + 1,
        last_step=step,
        began_from=began_from,
    )


def _other(
    trainer: Trainer, recipe: Mapping[str, Any], last: dict[str, Any], before: Stretch | None, now: Stretch
) -> str | None:
    """Return what affected the checkpoint's numbers and has changed since, or None."""
    if before is None:  # the checkpoint is older than the record of stretches
        return "by other code (nothing is known of it)"
    made = RecordedCode(before.code, last.get("components", {}))
    if (code := other_code("training", recipe, made, last["definitions"])) is not None:
        return f"by other code ({code})"
    if (versions := other_versions(before.versions)) is not None:
        return f"by other libraries ({versions})"
    if trainer.accelerator == "cpu" and before.threads != now.threads:
        return f"by {before.threads} threads, not the {now.threads} of trainer.threads={trainer.threads}"
    return None
