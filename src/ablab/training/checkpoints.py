"""Checkpoints of a run: the last state for a resume, candidate weights, and the selected weights."""

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
    """The rule that selects the weights for the test set.

    `select` is one of
    `best`: the weights of the best validation, by `monitor`;
    `last`: the weights at the end of training;
    `averaged`: the mean of the last `average_last` validated weights up to and including the best;
    `best_or_averaged`: whichever of `best` and `averaged` validates better, `best` if they are equal;
    `averaged_last`: the mean of the last `average_last` snapshots. A snapshot is taken after every multiple of
    `average_every` steps, and one where training ends, for whatever reason (Vaswani et al. 2017, section 6.1). The last
    gap may therefore be shorter. fairseq's `average_checkpoints.py --num-update-checkpoints`, which takes multiples
    alone, averages the same weights if training ends at a multiple.
    If there are fewer than `average_last`, all are averaged.
    """

    select: str
    monitor: str
    average_last: int
    average_every: int

    def candidates(self, validations: Sequence[Validation], step: int) -> list[list[int]]:
        """Return the steps of each candidate mean if training ends at `step`, a validation; the first wins ties."""
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
        """Return whether the weights after this step are needed even if they are not validated."""
        return self.select == "averaged_last" and step % self.average_every == 0

    def worth_keeping(self, validations: Sequence[Validation], step: int) -> set[int]:
        """Return the steps up to `step` whose weights are needed if training ends here, or may be if it continues."""
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
    """Return the arithmetic mean of the parameters (Gao et al. 2022, eq. 1), summed in float64.

    Shared tables are stored once, so tied weights stay tied.
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
    """The selected weights, the steps they average, and their validation."""

    weights: Weights
    steps: list[int]
    validation: Validation


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoint folder of a run, and the rule that selects weights. Files hold only tensors and plain data.

    `seconds_apart`: the longest time between saves, in seconds; None: no limit, saves follow validations and snapshots.
    """

    folder: Path
    selection: Selection
    seconds_apart: float | None

    def is_due(self, step: int, seconds: float) -> bool:
        """Return whether to save after this step, `seconds` after the last save, even without a validation."""
        return self.selection.is_snapshot(step) or (self.seconds_apart is not None and seconds >= self.seconds_apart)

    def save(self, model: Mapping[str, Tensor], optimizer: Mapping[str, Any], state: TrainingState) -> None:
        """Write the weights if they may be selected, then the last state, then delete weights no longer needed.

        The order matters: after a kill in between, training continues from the earlier state, and may need its weights.
        """
        steps = self.selection.worth_keeping(state.validations, state.step)
        if state.step in steps:
            self._write_weights(self._of_step(state.step), model)
        self.save_last(model, optimizer, state)
        for path in set(self.folder.glob(f"{CANDIDATE}*")) - {self._of_step(step) for step in steps}:
            path.unlink()

    def save_last(self, model: Mapping[str, Tensor], optimizer: Mapping[str, Any], state: TrainingState) -> None:
        """Write all that a resume needs; random streams are functions of the step and need no state."""
        content = {
            "model": dict(model),
            "optimizer": dict(optimizer),
            "course": state.as_dict(),
            "definitions": dict(code("training").definitions),
        }
        with replacing(self.folder / LAST) as temporary:
            torch.save(content, temporary)

    def load_last(self) -> dict[str, Any] | None:
        """Return the last checkpoint, or None."""
        return load_last(self.folder)

    def choose(self, state: TrainingState, validate: Callable[[Weights], Validation]) -> Choice:
        """Write and return the selected weights; `validate` scores averaged weights, which have no validation yet."""
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
    """Return the last checkpoint in a folder, or None; `mapped`: its tensors are read from disk only on use."""
    path = folder / LAST
    if not path.exists():
        return None
    content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    return content
