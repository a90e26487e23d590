"""Search for the layers, or heads, to keep, by the validation scores of the pruned model.

Validation loss ranks the combinations, a second score decides among the finalists. The test set is not used; and since
the best of many is better on validation than elsewhere, the number of combinations tried is reported.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, isqrt
from typing import Protocol, TypeVar

from ablab.code.load import construct
from ablab.config.kinds import chosen_part
from ablab.transformer.config.options import Pruning
from ablab.transformer.model.transformer import TokenModel
from ablab.transformer.pruning.heads import Head, Heads, HeadStrategy, Importance, Removal, at_random, by_importance
from ablab.transformer.pruning.strategies import STACKS, Depths, Kept, Strategy

Remaining = TypeVar("Remaining", contravariant=True)


class Judge(Protocol[Remaining]):
    """Validation scores of the model with only the layers, or heads, kept; each is computed once."""

    def loss(self, kept: Remaining) -> float:
        """Return nats per target token."""

    def quality(self, kept: Remaining) -> float:
        """Return the score that decides among finalists, such as BLEU of greedy search; the higher the better."""


@dataclass(frozen=True)
class SearchStrategy:
    """Try all combinations where there are at most `exhaustive`, otherwise a beam over removals of single layers.

    `budget`: most combinations that the beam may score on its way to a target; it is narrowed to fit, but never below
    1, which is greedy removal. `together`: both stacks in one search, instead of each with the other whole.
    """

    judge: Judge[Kept]
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
        return finalists[0] if len(finalists) == 1 else max(finalists, key=self.judge.quality)

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

    def __init__(self, judge: Judge[Kept], *, together: bool) -> None:
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


@dataclass(frozen=True)
class HeadSearch:
    """A beam over removals of single heads, whose candidates are the least important of those that remain.

    A model has too many heads to try each at every step (a greedy removal of 144 would score 10,000 sets). So each
    step scores about budget / removals sets: of each state of the beam, those without one of its least important
    heads. With room for one set, this is removal by importance. The lowest losses go on; at the numbers asked for,
    the judge's quality decides among `finalists`. `budget`: most sets that the whole curve may score by loss, unless
    there are more removals.
    """

    judge: Judge[Heads]
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
        return finalists[0] if len(finalists) == 1 else max(finalists, key=self.judge.quality)


def build_strategy(pruning: Pruning, model: TokenModel, judge: Judge[Kept]) -> Strategy:
    """Build the pruning strategy that the configuration names, ready to choose the layers to keep."""
    depths = {f"{stack}_layers": len(model.stacks.get(stack, ())) for stack in STACKS}
    rates = {stack: getattr(model, stack).layerdrop.rates() if stack in model.stacks else [] for stack in STACKS}
    facts = {**depths, "judge": judge, "rates": rates}
    strategy: Strategy = construct(chosen_part(pruning), {**facts, **pruning.own})
    return strategy


def build_head_strategy(
    pruning: Pruning, full: Heads, importance: Callable[[], Importance], judge: Judge[Heads]
) -> HeadStrategy:
    """Build the strategy that chooses the heads to keep. `importance` is asked only where the strategy needs it."""
    return HEAD_STRATEGIES[pruning.kind](pruning, full, importance, judge)


def _head_search(
    pruning: Pruning, full: Heads, importance: Callable[[], Importance], judge: Judge[Heads]
) -> HeadStrategy:
    sizes = {"beam": 1, "finalists": 1, **pruning.own}
    own = {name: sizes[name] for name in ("beam", "budget", "finalists")}
    return HeadSearch(judge, by_importance(full, importance()), **own)


HEAD_STRATEGIES: dict[str, Callable[[Pruning, Heads, Callable[[], Importance], Judge[Heads]], HeadStrategy]] = {
    "importance": lambda _, full, importance, __: Removal(by_importance(full, importance())),
    "random": lambda pruning, full, *_: Removal(at_random(full, pruning.own["seed"])),
    "greedy": _head_search,
    "search": _head_search,
}
"""Builders of strategies for heads by their name in conf/pruning."""
