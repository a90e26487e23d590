"""Search for the layers to keep, by the validation scores of the pruned model.

Validation loss ranks the combinations, validation BLEU decides among the finalists. The test set is not used; and since
the best of many is better on validation than elsewhere, the number of combinations tried is reported.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Protocol

from ablab.transformer.pruning.strategies import STACKS, Depths, Kept


class Judge(Protocol):
    """Validation scores of the model with only the layers kept; each is computed once."""

    def loss(self, kept: Kept) -> float:
        """Return nats per target token."""

    def bleu(self, kept: Kept) -> float:
        """Return BLEU of greedy search."""


@dataclass(frozen=True)
class SearchStrategy:
    """Try all combinations where there are at most `exhaustive`, otherwise a beam over removals of single layers.

    `budget`: most combinations that the beam may score on its way to a target; it is narrowed to fit, but never below
    1, which is greedy removal. `together`: both stacks in one search, instead of each with the other whole.
    """

    judge: Judge
    exhaustive: int
    beam: int
    budget: int
    finalists: int
    together: bool

    def __call__(self, full: Depths, target: Depths) -> Kept:
        """Return the best layers found."""
        if self.together:
            return self._best(full, target)
        encoder = self._best(full, Depths(target.encoder, full.decoder)).encoder
        decoder = self._best(full, Depths(full.encoder, target.decoder)).decoder
        return Kept(encoder, decoder)

    def _best(self, full: Depths, target: Depths) -> Kept:
        if full == target:
            return Kept.all_of(full)
        count = comb(full.encoder, target.encoder) * comb(full.decoder, target.decoder)
        found = all_combinations(full, target) if count <= self.exhaustive else self._removals(full, target)
        finalists = sorted(found, key=self.judge.loss)[: self.finalists]
        return finalists[0] if len(finalists) == 1 else max(finalists, key=self.judge.bleu)

    def _removals(self, full: Depths, target: Depths) -> list[Kept]:
        beam = [Kept.all_of(full)]
        steps = sum(full) - sum(target)
        for _ in range(steps):
            # A state has at most sum(depths) children; the budget is spread evenly over the steps.
            width = min(self.beam, max(1, self.budget // (steps * sum(beam[0].depths))))
            children = {child for kept in beam[:width] for child in one_fewer(kept, target)}
            beam = ranked(children, self.judge.loss)
        return beam


class Greedy(SearchStrategy):
    """Remove one layer at a time, the one whose absence costs least validation loss."""

    def __init__(self, judge: Judge, *, together: bool) -> None:
        super().__init__(judge, exhaustive=0, beam=1, budget=1, finalists=1, together=together)


def all_combinations(full: Depths, target: Depths) -> list[Kept]:
    """Return every choice of as many layers as the target says."""
    return [
        Kept(encoder, decoder)
        for encoder in combinations(range(full.encoder), target.encoder)
        for decoder in combinations(range(full.decoder), target.decoder)
    ]


def one_fewer(kept: Kept, target: Depths) -> list[Kept]:
    """Return each choice with one layer fewer, in a stack that is still deeper than its target."""
    return [
        kept.without(stack, layer)
        for stack in STACKS
        if len(getattr(kept, stack)) > getattr(target, stack)
        for layer in getattr(kept, stack)
    ]


def ranked(candidates: set[Kept], loss: Callable[[Kept], float]) -> list[Kept]:
    """Sort by loss, the lowest first; of equals, the lower layers."""
    return sorted(candidates, key=lambda kept: (loss(kept), kept))
