"""A run's weights on disk: the last state for a resume, the validated weights that may count, the selected."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ablab.files import replacing
from ablab.provenance import code
from ablab.store import LAST, SELECTED, VALIDATED
from ablab.training.averaging import average, selected_steps, steps_worth_keeping
from ablab.training.course import Course
from ablab.training.validation import best


@dataclass(frozen=True)
class Checkpoints:
    """The folder, and the rule by which weights are selected. Files are tensors and plain data, nothing else."""

    folder: Path
    monitor: str
    select: str
    average_last: int

    def save_validated(self, weights: Mapping[str, Tensor], course: Course) -> None:
        """Keep the weights just validated, and drop those that can no longer be selected."""
        self._write_weights(self._validated(course.step), weights)
        steps = [validation.step for validation in course.validations]
        leader = best(course.validations, self.monitor).step
        keep = steps_worth_keeping(steps, leader, select=self.select, average_last=self.average_last)
        for step in set(steps) - keep:
            self._validated(step).unlink(missing_ok=True)

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

    def choose(self, course: Course) -> tuple[dict[str, Tensor], list[int]]:
        """Write and return the selected weights, and the steps they come from."""
        steps = [validation.step for validation in course.validations]
        leader = best(course.validations, self.monitor).step
        chosen = selected_steps(steps, leader, select=self.select, average_last=self.average_last)
        weights = average(load_file(self._validated(step)) for step in chosen)
        self._write_weights(self.folder / SELECTED, weights)
        return weights, chosen

    def _validated(self, step: int) -> Path:
        return self.folder / f"{VALIDATED}{step}.safetensors"

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
