"""Builders of objects from the configuration: the only package that knows both."""

from ablab.transformer.build.model import build_model, check_devices, device_of, load_model, set_threads
from ablab.transformer.build.stretch import begin_stretch
from ablab.transformer.build.training import (
    Trainable,
    build_checkpoints,
    build_ends,
    build_objective,
    limit,
    trainer_options,
)
from ablab.transformer.pruning.search import HEAD_STRATEGIES, build_head_strategy, build_strategy

__all__ = [
    "HEAD_STRATEGIES",
    "Trainable",
    "begin_stretch",
    "build_checkpoints",
    "build_ends",
    "build_head_strategy",
    "build_model",
    "build_objective",
    "build_strategy",
    "check_devices",
    "device_of",
    "limit",
    "load_model",
    "set_threads",
    "trainer_options",
]
