"""Keys and values: of one input, and of the target so far while it is decoded."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class KeysValues(NamedTuple):
    """Projected keys and values, one sequence per row: [batch, heads, length, d_head] each."""

    keys: Tensor
    values: Tensor

    def rows(self, index: Tensor) -> "KeysValues":
        """Select the rows `index`, in that order."""
        return KeysValues(self.keys.index_select(0, index), self.values.index_select(0, index))


class KVCache:
    """Keys and values of the target so far, for token-by-token decoding without gradients.

    Holds two pairs of buffers, [max_len, rows, heads, d_head] each. Positions come first, so that each write fills one
    contiguous block. The second pair lets `reorder` copy the rows once instead of twice. `like`: the type and width of
    a head's vectors, [..., d_head].
    """

    def __init__(self, like: Tensor, max_len: int, rows: int, heads: int) -> None:
        shape = (max_len, rows, heads, like.size(-1))
        self.here = KeysValues(like.new_empty(shape), like.new_empty(shape))
        self.there = KeysValues(like.new_empty(shape), like.new_empty(shape))

    def write(
        self, position: int, keys: Float[Tensor, "rows heads d_head"], values: Float[Tensor, "rows heads d_head"]
    ) -> None:
        """Store the keys and values of the token at `position`."""
        self.here.keys[position] = keys
        self.here.values[position] = values

    def until(self, position: int) -> KeysValues:
        """Return keys and values up to and including `position`, [rows, heads, length, d_head]."""
        return KeysValues(*(buffer[: position + 1].permute(1, 2, 0, 3) for buffer in self.here))

    def reorder(self, rows: Int[Tensor, "rows"], written: int) -> None:
        """Replace row i by row `rows[i]`, for the first `written` positions; `rows` may be shorter than before."""
        for old, new in zip(self.here, self.there, strict=True):
            torch.index_select(old[:written], 1, rows, out=new[:written, : len(rows)])
        self.here, self.there = (
            KeysValues(*(buffer[:, : len(rows)] for buffer in pair)) for pair in (self.there, self.here)
        )
