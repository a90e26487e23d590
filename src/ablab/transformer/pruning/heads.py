"""The heads that remain of a model, and the orders in which heads are removed.

Michel, Levy and Neubig 2019 sort all heads of the model together and remove the lowest first, as here. They allow an
attention to lose all of its heads; here one stays in each, so that every point of a curve is a Transformer whose
sublayers all attend.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ablab.files import json_digest
from ablab.seeding import derive

PARTS = 8
"""A curve has a point at every eighth of all heads."""


class Head(NamedTuple):
    """One head of a model: the site of its attention as DropHead names it, its layer and its number, from 0."""

    site: str
    layer: int
    head: int


class Heads(NamedTuple):
    """By site and layer, the indices of the heads that remain, from 0 and ascending."""

    encoder: tuple[tuple[int, ...], ...]
    decoder: tuple[tuple[int, ...], ...]
    cross: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, sites: Mapping[str, Sequence[Sequence[int]]]) -> "Heads":
        """Return the heads of a mapping such as `sites`."""
        return cls(*(tuple(tuple(heads) for heads in sites[site]) for site in cls._fields))

    @classmethod
    def all_of(cls, encoder_layers: int, decoder_layers: int, num_heads: int) -> "Heads":
        """Keep every head. A decoder alone attends to no encoder."""
        heads, crossing = tuple(range(num_heads)), decoder_layers if encoder_layers else 0
        return cls(*((heads,) * layers for layers in (encoder_layers, decoder_layers, crossing)))

    @property
    def sites(self) -> dict[str, list[list[int]]]:
        """The indices by site, as plain values."""
        return {site: [list(heads) for heads in layers] for site, layers in zip(self._fields, self, strict=True)}

    @property
    def settings(self) -> dict[str, list[list[int]]]:
        """What names these heads in the settings of an evaluation."""
        return {f"{site}_heads": layers for site, layers in self.sites.items()}

    @property
    def each(self) -> Iterator[Head]:
        """Every head that remains."""
        return (Head(site, n, head) for site, at in self.sites.items() for n, heads in enumerate(at) for head in heads)

    @property
    def total(self) -> int:
        """The number of heads that remain in the whole model."""
        return sum(len(heads) for layers in self for heads in layers)

    @property
    def attentions(self) -> int:
        """The number of attentions, and so of heads that always stay."""
        return sum(len(layers) for layers in self)

    @property
    def name(self) -> str:
        """A folder name such as `heads-24-5b0c9f3a7e1`: how many remain, and a digest of which."""
        return f"heads-{self.total}-{json_digest(self.sites, 11)}"

    def may_lose(self, head: Head) -> bool:
        """Return whether this head is not the last one of its attention."""
        return len(getattr(self, head.site)[head.layer]) > 1

    def without(self, head: Head) -> "Heads":
        """Return the choice with one head fewer."""
        layers = list(getattr(self, head.site))
        layers[head.layer] = tuple(index for index in layers[head.layer] if index != head.head)
        return self._replace(**{head.site: tuple(layers)})


class HeadStrategy(Protocol):
    """Chooses the heads that remain at each number of them."""

    def __call__(self, full: Heads, counts: Sequence[int]) -> list[Heads]:
        """Return a choice for each of the numbers, which descend; `full` may be the first."""


class Removal:
    """Removes heads in a fixed order, those of `order` first; each choice contains the smaller ones.

    A head that is the last of its attention when its turn comes stays for good.
    """

    def __init__(self, order: Sequence[Head]) -> None:
        self.order = order

    def __call__(self, full: Heads, counts: Sequence[int]) -> list[Heads]:
        """Walk along the order once."""
        found = {full.total: full}
        kept = full
        for head in self.order:
            if kept.may_lose(head):
                kept = kept.without(head)
                found[kept.total] = kept
        return [found[count] for count in counts]


Importance = Mapping[str, Sequence[Sequence[float]]]
"""By site and layer, the importance of each head."""


def by_importance(full: Heads, importance: Importance) -> list[Head]:
    """Return all heads, the least important first; of equals, the first in the model."""
    return sorted(full.each, key=lambda head: importance[head.site][head.layer][head.head])


def at_random(full: Heads, seed: int) -> list[Head]:
    """Return all heads in a random order: the control that an importance must beat."""
    order = list(full.each)
    random.Random(derive(seed, "pruning", "heads", str(full.sites))).shuffle(order)
    return order


def head_counts(full: Heads, wanted: Sequence[int] | None) -> list[int]:
    """Return the numbers of heads of a curve's points, from all of them down.

    None: every eighth of all heads, rounded half up, that leaves one per attention.
    """
    eighths = ((2 * full.total * part + PARTS) // (2 * PARTS) for part in range(1, PARTS))
    counts = (count for count in eighths if count >= full.attentions) if wanted is None else wanted
    return sorted({full.total, *counts}, reverse=True)
