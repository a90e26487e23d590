"""Which layers of the two stacks remain."""

from typing import NamedTuple


class Depths(NamedTuple):
    """Number of layers of each stack."""

    encoder: int
    decoder: int


class Kept(NamedTuple):
    """Indices, from 0 and rising, of the layers that remain in each stack."""

    encoder: tuple[int, ...]
    decoder: tuple[int, ...]

    @classmethod
    def all_of(cls, full: Depths) -> "Kept":
        """Nothing is removed."""
        return cls(tuple(range(full.encoder)), tuple(range(full.decoder)))

    @property
    def depths(self) -> Depths:
        """How many remain."""
        return Depths(len(self.encoder), len(self.decoder))

    def without(self, stack: str, layer: int) -> "Kept":
        """One layer fewer."""
        return self._replace(**{stack: tuple(index for index in getattr(self, stack) if index != layer)})

    @property
    def layers(self) -> dict[str, tuple[int, ...]]:
        """By the name of the stack."""
        return dict(zip(STACKS, self, strict=True))

    @property
    def name(self) -> str:
        """`encoder-1-2-3-4_decoder-1-3-5`, layers from 1 as the papers count: fit for a folder."""
        parts = ("-".join([stack, *(str(index + 1) for index in layers)]) for stack, layers in self.layers.items())
        return "_".join(parts)


STACKS = Depths._fields
