"""From configuration to objects: the only place that knows both."""

from ablab.assembly.models import build_model, check_devices, device_of, load_model, set_threads
from ablab.assembly.start import Start, build_start
from ablab.assembly.strategies import STRATEGIES, build_strategy
from ablab.assembly.stretches import begin_stretch
from ablab.assembly.training import (
    build_checkpoints,
    build_ends,
    build_objective,
    build_search,
    build_steps,
    trainer_options,
)
from ablab.tracking.open import mirrored

__all__ = [
    "STRATEGIES",
    "Start",
    "begin_stretch",
    "build_checkpoints",
    "build_ends",
    "build_model",
    "build_objective",
    "build_search",
    "build_start",
    "build_steps",
    "build_strategy",
    "check_devices",
    "device_of",
    "load_model",
    "mirrored",
    "set_threads",
    "trainer_options",
]
