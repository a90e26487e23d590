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
    def name(self) -> str:
        """`enc-0-1-2-3,dec-0-2-4`: unambiguous at any depth, and fit for a folder."""
        encoder, decoder = ("-".join(str(index) for index in stack) for stack in self)
        return f"enc-{encoder},dec-{decoder}"


STACKS = Depths._fields
