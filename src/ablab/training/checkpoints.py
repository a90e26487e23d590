"""A run's weights on disk: the last state for a resume, the weights that may count, the selected."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ablab.files import replacing
from ablab.provenance import code
from ablab.store.run_folder import CANDIDATE, LAST, SELECTED
from ablab.training.averaging import Selection, Weights, average
from ablab.training.course import Course
from ablab.training.validation import Validation


@dataclass(frozen=True)
class Choice:
    """The selected weights, the steps whose mean they are, and what validation says of them."""

    weights: Weights
    steps: list[int]
    validation: Validation


@dataclass(frozen=True)
class Checkpoints:
    """The folder, and the rule by which weights are selected. Files are tensors and plain data, nothing else.

    `seconds_apart`: how long training goes on at most before its state is saved; None: until the next validation.
    """

    folder: Path
    selection: Selection
    seconds_apart: float | None

    def is_due(self, step: int, seconds: float) -> bool:
        """Whether to save after this step, validated or not, so many seconds after the last time."""
        return self.selection.is_snapshot(step) or (self.seconds_apart is not None and seconds >= self.seconds_apart)

    def save(self, model: Mapping[str, Tensor], optimizer: Mapping[str, Any], course: Course) -> None:
        """Write the weights, where they may be selected, and the last state; then drop what can be selected no more.

        In this order: after a kill in between, training goes on from the state before, and may need what that needed.
        """
        steps = self.selection.worth_keeping(course.validations, course.step)
        if course.step in steps:
            self._write_weights(self._of_step(course.step), model)
        self.save_last(model, optimizer, course)
        for path in set(self.folder.glob(f"{CANDIDATE}*")) - {self._of_step(step) for step in steps}:
            path.unlink()

    def save_last(self, model: Mapping[str, Tensor], optimizer: Mapping[str, Any], course: Course) -> None:
        """All that a resume needs; random streams need nothing, being functions of the step."""
        content = {
            "model": dict(model),
            "optimizer": dict(optimizer),
            "course": course.as_dict(),
            "definitions": dict(code("training").definitions),
        }
        with replacing(self.folder / LAST) as temporary:
            torch.save(content, temporary)

    def load_last(self) -> dict[str, Any] | None:
        """The state to continue from, if there is one."""
        return load_last(self.folder)

    def choose(self, course: Course, validate: Callable[[Weights], Validation]) -> Choice:
        """Write and return the selected weights; `validate` judges means, which nobody has validated yet."""
        known = {validation.step: validation for validation in course.validations}
        chosen: Choice | None = None
        for steps in self.selection.candidates(course.validations, course.step):
            weights = average(load_file(self._of_step(step)) for step in steps)
            validation = validate(weights) if len(steps) > 1 else known[steps[0]]
            if chosen is None or validation.better_than(chosen.validation, self.selection.monitor):
                chosen = Choice(weights, steps, validation)
        assert chosen is not None, "every selection has a candidate"
        self._write_weights(self.folder / SELECTED, chosen.weights)
        return chosen

    def _of_step(self, step: int) -> Path:
        return self.folder / f"{CANDIDATE}{step}.safetensors"

    def _write_weights(self, path: Path, weights: Mapping[str, Tensor]) -> None:
        with replacing(path) as temporary:
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, temporary)


def load_last(folder: Path, *, mapped: bool = False) -> dict[str, Any] | None:
    """The last checkpoint in a folder, if there is one; `mapped`: its tensors are read only where they are used."""
    path = folder / LAST
    if not path.exists():
        return None
    content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    return content
