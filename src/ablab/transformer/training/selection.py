"""Selection of the weights that meet the test set: by validation, the last, or the mean of several."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ablab.store.records import NOTHING_LEARNT
from ablab.transformer.training.validation import Validation, best

Weights = dict[str, Tensor]

AT_THE_END = ("last", "averaged_last")
"""Rules that select weights by where training ends, whatever validation says."""


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


def why_diverged(validations: Sequence[Validation], unigram: float, select: str) -> str | None:
    """Return why a training that ended diverged, or None: its validation loss never left the loss `unigram` of word
    frequencies alone, or came back to it where the weights at the end are those that count.

    The loss of the selected weights says neither: another score may have selected the first ones, and a mean of weights
    may be poor though each of them is good. Nor is a last loss above `unigram` alone a divergence, as training that
    overfits ends there too.
    """
    limit = unigram * (1 - NOTHING_LEARNT)
    below = f"{100 * NOTHING_LEARNT:g} % below the unigram loss {unigram:.3f}"
    lowest, last = best(validations, "loss"), validations[-1]
    if lowest.loss > limit:
        return f"the best validation loss, {lowest.loss:.3f}, is not {below}: nothing was learnt"
    if last.loss > limit and select in AT_THE_END:
        fallen = f"after {lowest.loss:.3f} at step {lowest.step:,}"
        return f"the last validation loss, {last.loss:.3f}, is not {below}, {fallen}: what was learnt is lost"
    return None


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
