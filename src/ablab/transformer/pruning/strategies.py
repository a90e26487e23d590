"""Rules for the layers to keep: (depths, target depths) -> indices. None needs a model; see search.py for those that
do.

Layers are numbered from 0; the papers count from 1.
"""

import abc
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, Protocol

from ablab.errors import UserError
from ablab.seeding import derive


class Depths(NamedTuple):
    """Number of layers of each stack."""

    encoder: int
    decoder: int


class Kept(NamedTuple):
    """Indices, from 0 and ascending, of the layers that remain in each stack."""

    encoder: tuple[int, ...]
    decoder: tuple[int, ...]

    @classmethod
    def all_of(cls, full: Depths) -> "Kept":
        """Keep every layer."""
        return cls(tuple(range(full.encoder)), tuple(range(full.decoder)))

    @property
    def depths(self) -> Depths:
        """The number of remaining layers of each stack."""
        return Depths(len(self.encoder), len(self.decoder))

    def without(self, stack: str, layer: int) -> "Kept":
        """Return the choice with one layer fewer."""
        return self._replace(**{stack: tuple(index for index in getattr(self, stack) if index != layer)})

    @property
    def layers(self) -> dict[str, tuple[int, ...]]:
        """The indices by the name of the stack."""
        return dict(zip(STACKS, self, strict=True))

    @property
    def settings(self) -> dict[str, tuple[int, ...]]:
        """What names these layers in the settings of an evaluation."""
        return self.layers

    @property
    def name(self) -> str:
        """A folder name such as `encoder-1-2-3-4_decoder-1-3-5`, with layers counted from 1 as in the papers."""
        parts = ("-".join([stack, *(str(index + 1) for index in layers)]) for stack, layers in self.layers.items())
        return "_".join(parts)


STACKS = Depths._fields


class Strategy(Protocol):
    """Chooses the layers that remain when `full` shrinks to `target`; a stack that does not shrink stays whole."""

    def __call__(self, full: Depths, target: Depths) -> Kept:
        """Return as many indices in each stack as the target says."""


def check_choice(kept: Kept, full: Depths, target: Depths) -> None:
    """Raise UserError unless a choice is as `Strategy` says: an own one may choose anything."""
    for stack, layers, count, depth in zip(STACKS, kept, target, full, strict=True):
        if len(layers) != count or list(layers) != sorted({*layers} & {*range(depth)}):
            raise UserError(f"{stack}: layers {tuple(layers)} are no {count} of {depth}, ascending from 0")


class Rule(abc.ABC):
    """A strategy that treats each stack by itself, and depends on nothing but its depth."""

    def __call__(self, full: Depths, target: Depths) -> Kept:
        """Apply the rule to each stack."""
        return Kept(
            self.layers(full.encoder, target.encoder, "encoder"), self.layers(full.decoder, target.decoder, "decoder")
        )

    @abc.abstractmethod
    def layers(self, depth: int, keep: int, stack: str) -> tuple[int, ...]:
        """Return `keep` of the indices 0..depth-1, ascending; 1 <= keep <= depth."""


def papers_every_other(depth: int, p: Fraction) -> tuple[int, ...]:
    """Return the layers, from 0, left when layers d of 1..N with d = 0 (mod floor(1/p)) are dropped; 0 < p <= 1,
    exactly.

    Fan et al. 2020, section 3.2. The number that remains is rarely N (1 - p): above p = 1/2 nothing remains, and p =
    2/5 drops half.
    """
    stride = int(1 / p)
    return tuple(layer - 1 for layer in range(1, depth + 1) if layer % stride)


class EvenlySpaced(Rule):
    """Keep layer round(i (N - 1) / (r - 1)) for i = 0..r-1: the first and the last, or the first where r is 1."""

    def layers(self, depth: int, keep: int, stack: str) -> tuple[int, ...]:
        """Round half a step up."""
        if keep == 1:
            return (0,)
        gaps = keep - 1
        return tuple((2 * i * (depth - 1) + gaps) // (2 * gaps) for i in range(keep))


class EveryOther(EvenlySpaced):
    """The paper's rule at p = 1 - r/N where it leaves r layers, evenly spaced layers elsewhere.

    It leaves r for p = 1/m with m a divisor of N, and a few more; the paper reports other depths (12 to 3) without
    saying how. Its rule always drops the last layer of a stack that it halves.
    """

    def layers(self, depth: int, keep: int, stack: str) -> tuple[int, ...]:
        """Use exact fractions: in floating point 1 / (1 - 4/6) falls below 3, and one layer too many would go."""
        if keep == depth:
            return tuple(range(depth))
        ruled = papers_every_other(depth, Fraction(depth - keep, depth))
        return ruled if len(ruled) == keep else super().layers(depth, keep, stack)


class First(Rule):
    """The lowest layers: a control that no paper recommends."""

    def layers(self, depth: int, keep: int, stack: str) -> tuple[int, ...]:
        return tuple(range(keep))


class Last(Rule):
    """The highest layers: a control that no paper recommends."""

    def layers(self, depth: int, keep: int, stack: str) -> tuple[int, ...]:
        return tuple(range(depth - keep, depth))


class Random(Rule):
    """Random layers, one draw for each (seed, stack, depth, keep): the control that a rule must beat."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def layers(self, depth: int, keep: int, stack: str) -> tuple[int, ...]:
        """Draw uniformly without replacement."""
        stream = random.Random(derive(self.seed, "pruning", stack, depth, keep))
        return tuple(sorted(stream.sample(range(depth), keep)))


class DataDriven(Rule):
    """The layers that training has learned to drop least (Fan et al. 2020, section 3.2): a fixed top-k of 1 - p_d."""

    def __init__(self, rates: Mapping[str, Sequence[float]]) -> None:
        self.drop_rates = rates

    def layers(self, depth: int, keep: int, stack: str) -> tuple[int, ...]:
        """Prefer the lower of layers with equal rates."""
        rates = self.drop_rates[stack]
        return tuple(sorted(sorted(range(depth), key=lambda layer: (rates[layer], layer))[:keep]))


def curves_of(names: Sequence[str], full: Depths) -> list[str]:
    """Return the curves of these names that a model has: one of `both` stacks needs two."""
    stacks = [stack for stack in STACKS if getattr(full, stack)]
    has = {*stacks, "both"} if len(stacks) > 1 else {*stacks}
    return [name for name in dict.fromkeys(names) if name in has]


def targets(curve: str, full: Depths, depths: Sequence[int] | None) -> list[Depths]:
    """Return the target depths from the full model down.

    `curve`: the stack that shrinks, or `both`, where the other stack shrinks in proportion, rounded, and keeps at least
    one layer. `depths`: numbers of layers left in the stack that shrinks, the deeper one for `both`; None: every
    number.
    """
    deepest = max(full) if curve == "both" else getattr(full, curve)
    wanted = range(1, deepest + 1) if depths is None else sorted({*depths, deepest})
    return [_shrunk(curve, full, keep, deepest) for keep in reversed(wanted)]


def _shrunk(curve: str, full: Depths, keep: int, deepest: int) -> Depths:
    if curve != "both":
        return full._replace(**{curve: keep})
    # Integer arithmetic that rounds half a layer up.
    return Depths(*(max(1, (2 * depth * keep + deepest) // (2 * deepest)) for depth in full))
