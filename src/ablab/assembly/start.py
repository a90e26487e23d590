"""Where a training starts, be it new or continued: the same in every process of a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablab.assembly.models import build_model, start_from
from ablab.assembly.training import build_checkpoints, build_steps
from ablab.config import Config
from ablab.data.prepared import Prepared
from ablab.data.steps import TrainingSteps
from ablab.model.transformer import Transformer
from ablab.store.saved_model import SavedModel
from ablab.training.checkpoints import Checkpoints
from ablab.training.compiled import compile_layers
from ablab.training.course import Course


@dataclass
class Start:
    """The model, the data and the progress so far. `optimizer_state`: None at step 0."""

    model: Transformer
    steps: TrainingSteps
    course: Course
    checkpoints: Checkpoints
    optimizer_state: dict[str, Any] | None


def build_start(config: Config, prepared: Prepared, folder: Path, origin: SavedModel | None) -> Start:
    """From the last checkpoint in `folder`; else from the weights of `origin`; else from initial weights."""
    src_vocab, tgt_vocab = prepared.manifest["vocab"]
    model = build_model(config, src_vocab=src_vocab, tgt_vocab=tgt_vocab)
    if origin is not None:
        start_from(model, origin)
    checkpoints = build_checkpoints(config, folder)
    course, optimizer_state = Course(), None
    if (last := checkpoints.load_last()) is not None:
        course, optimizer_state = Course.from_dict(last["course"]), last["optimizer"]
        model.load_state_dict(last["model"])
    if config.trainer.compile:
        compile_layers(model)
    return Start(model, build_steps(config, prepared), course, checkpoints, optimizer_state)
