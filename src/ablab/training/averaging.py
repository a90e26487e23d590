"""Which weights may count when training ends, and their mean."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

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
