"""Removal of heads guided by the validation loss of the pruned model, beginning from the order of importance."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Protocol

from ablab.transformer.pruning.heads import Head, Heads


class HeadJudge(Protocol):
    """Validation scores of the model with only the heads kept; each is computed once."""

    def loss(self, kept: Heads) -> float:
        """Return nats per target token."""

    def bleu(self, kept: Heads) -> float:
        """Return BLEU of greedy search."""


@dataclass(frozen=True)
class HeadSearch:
    """A beam over removals of single heads, whose candidates are the least important of those that remain.

    A model has too many heads to try each at every step (a greedy removal of 144 would score 10,000 sets). So each
    step scores about budget / removals sets: of each state of the beam, those without one of its least important
    heads. With room for one set, this is removal by importance. The lowest losses go on; at the numbers asked for,
    validation BLEU decides among `finalists`. `budget`: most sets that the whole curve may score by loss, unless
    there are more removals.
    """

    judge: HeadJudge
    order: Sequence[Head]
    beam: int
    budget: int
    finalists: int

    def __call__(self, full: Heads, counts: Sequence[int]) -> list[Heads]:
        """Walk from the full model to the smallest number."""
        found = {full.total: full}
        beam = [full]
        removals = full.total - min(counts)
        room = max(1, self.budget // max(1, removals))
        states = min(self.beam, isqrt(room))  # as many heads are looked at as states are kept, where the beam allows
        for count in range(full.total - 1, min(counts) - 1, -1):
            beam = self._ranked({child for kept in beam[:states] for child in self._children(kept, room // states)})
            if count in counts:
                found[count] = self._best(beam[: self.finalists])
        return [found[count] for count in counts]

    def _children(self, kept: Heads, most: int) -> list[Heads]:
        left = set(kept.each)
        removable = [head for head in self.order if head in left and kept.may_lose(head)]
        return [kept.without(head) for head in removable[:most]]

    def _ranked(self, children: set[Heads]) -> list[Heads]:
        """Sort by loss, the lowest first; of equals, the first in the model. A single one needs no score."""
        if len(children) == 1:
            return list(children)
        return sorted(children, key=lambda kept: (self.judge.loss(kept), kept))

    def _best(self, finalists: Sequence[Heads]) -> Heads:
        return finalists[0] if len(finalists) == 1 else max(finalists, key=self.judge.bleu)
