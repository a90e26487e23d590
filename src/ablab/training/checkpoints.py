"""A run's weights on disk: the last state for a resume, the weights that may count, the selected."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ablab.files import replacing
from ablab.provenance import code
from ablab.store.run_folder import CANDIDATE, LAST, SELECTED
from ablab.training.state import TrainingState
from ablab.training.validation import Validation, best

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Selection:
    """How the weights that meet the test set are chosen.

    `select`, one of
    `best`: of the best validation, by `monitor`;
    `last`: of the end of training;
    `averaged`: the mean of the `average_last` validated weights that end at the best;
    `best_or_averaged`: of these two the one that validates better, the best alone where they are equal;
    `averaged_last`: the mean of the `average_last` last snapshots. One is taken after every step that is a multiple of
    `average_every`, and one where training ends, for whatever reason (Vaswani et al. 2017, section 6.1). So the last
    gap may be a shorter one; fairseq's `average_checkpoints.py --num-update-checkpoints`, which knows multiples alone,
    takes the same where the end is one.
    Of fewer than `average_last` all are taken.
    """

    select: str
    monitor: str
    average_last: int
    average_every: int

    def candidates(self, validations: Sequence[Validation], step: int) -> list[list[int]]:
        """Steps whose mean may count if training ends at `step`, its last validation; of equal ones the first does."""
        steps = [validation.step for validation in validations]
        leader = steps.index(best(validations, self.monitor).step) + 1
        single, mean = [steps[leader - 1]], steps[max(0, leader - self.average_last) : leader]
        return {
            "best": [single],
            "last": [steps[-1:]],
            "averaged": [mean],
            "best_or_averaged": [single] if mean == single else [single, mean],
            "averaged_last": [self._snapshots(step)],
        }[self.select]

    def is_snapshot(self, step: int) -> bool:
        """Whether the weights after this step are needed though nobody may validate them."""
        return self.select == "averaged_last" and step % self.average_every == 0

    def worth_keeping(self, validations: Sequence[Validation], step: int) -> set[int]:
        """Of the steps up to `step`, those that count if training ends here, and those that may if it goes on."""
        if self.select == "averaged_last":
            ends = bool(validations) and validations[-1].step == step
            return set(self._snapshots(step) if ends else self._multiples(step))
        if not validations:
            return set()
        recent = [validation.step for validation in validations][1 - self.average_last :]
        later = recent if self.select in ("averaged", "best_or_averaged") and self.average_last > 1 else []
        return {*later, *(step for steps in self.candidates(validations, step) for step in steps)}

    def _multiples(self, step: int) -> range:
        return range(self.average_every, step + 1, self.average_every)[-self.average_last :]

    def _snapshots(self, end: int) -> list[int]:
        return sorted({*self._multiples(end), end})[-self.average_last :]


def average(checkpoints: Iterable[Mapping[str, Tensor]]) -> Weights:
    """Arithmetic mean of the parameters (Gao et al. 2022, eq. 1), summed in float64.

    Shared tables are stored once, so ties stay ties.
    """
    total: Weights = {}
    count = 0
    dtypes: dict[str, torch.dtype] = {}
    for checkpoint in checkpoints:
        count += 1
        for name, tensor in checkpoint.items():
            dtypes[name] = tensor.dtype
            total[name] = total.get(name, torch.zeros_like(tensor, dtype=torch.float64)) + tensor.double()
    return {name: (tensor / count).to(dtypes[name]) for name, tensor in total.items()}


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

    def save(self, model: Mapping[str, Tensor], optimizer: Mapping[str, Any], state: TrainingState) -> None:
        """Write the weights, where they may be selected, and the last state; then drop what can be selected no more.

        In this order: after a kill in between, training goes on from the state before, and may need what that needed.
        """
        steps = self.selection.worth_keeping(state.validations, state.step)
        if state.step in steps:
            self._write_weights(self._of_step(state.step), model)
        self.save_last(model, optimizer, state)
        for path in set(self.folder.glob(f"{CANDIDATE}*")) - {self._of_step(step) for step in steps}:
            path.unlink()

    def save_last(self, model: Mapping[str, Tensor], optimizer: Mapping[str, Any], state: TrainingState) -> None:
        """All that a resume needs; random streams need nothing, being functions of the step."""
        content = {
            "model": dict(model),
            "optimizer": dict(optimizer),
            "course": state.as_dict(),
            "definitions": dict(code("training").definitions),
        }
        with replacing(self.folder / LAST) as temporary:
            torch.save(content, temporary)

    def load_last(self) -> dict[str, Any] | None:
        """The state to continue from, if there is one."""
        return load_last(self.folder)

    def choose(self, state: TrainingState, validate: Callable[[Weights], Validation]) -> Choice:
        """Write and return the selected weights; `validate` judges means, which nobody has validated yet."""
        known = {validation.step: validation for validation in state.validations}
        chosen: Choice | None = None
        for steps in self.selection.candidates(state.validations, state.step):
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
