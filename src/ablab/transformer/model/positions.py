"""Position encodings of two kinds: vectors added to the scaled word embedding, and changes to self-attention.

A class of the first kind returns the vectors of `length` positions from `start` on. A class of the second kind extends
`AttentionPosition`; nothing is added at the input then.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ablab.fields import Count, Positive


def sinusoid(length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """Return PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(same) (Vaswani et al. 2017, section 3.5)."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    wavelength = 10_000.0 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position / wavelength)
    table[:, 1::2] = torch.cos(position / wavelength)[:, : d_model // 2]
    return table


class SinusoidalPositions(nn.Module):
    """Fixed sinusoidal encodings in the model's precision; the table grows on demand, with no limit to the input."""

    table: Tensor

    FIRST = 512  # initial number of positions in the table

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table", sinusoid(self.FIRST, d_model).float(), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "SinusoidalPositions":
        """Move to another device or precision. What was rounded to single precision does not become double by that."""
        super()._apply(fn, recurse)
        if self.table.dtype == torch.float64:
            self.table = sinusoid(len(self.table), self.d_model).to(self.table)
        return self

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        if start + length > len(self.table):
            self.table = sinusoid(2 * (start + length), self.d_model).to(self.table)
        return self.table[start : start + length]


class LearnedPositions(nn.Module):
    """One learned vector per position below `max_length` (Gehring et al. 2017); later positions share the last.

    Sharing the last vector makes test sentences translatable that are longer than any in training.
    """

    def __init__(self, d_model: int, max_length: Count) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_length, d_model))

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        last = len(self.weight) - 1
        return self.weight[torch.arange(start, start + length, device=self.weight.device).clamp(max=last)]


class AttentionPosition(nn.Module):
    """What self-attention knows of positions; each self-attention has an instance of its own.

    A subclass overrides `rotate`, `bias` or both. Its constructor gets by name what it asks for: `d_model`,
    `num_heads`, `d_head`, and `stack` ("encoder" or "decoder"). Cross-attention knows no positions.
    """

    def rotate(
        self, x: Float[Tensor, "batch heads length d_head"], start: int
    ) -> Float[Tensor, "batch heads length d_head"]:
        """Return queries or keys of the positions from `start` on, as they enter the products; here unchanged.

        Keys are kept after this, so what it does to a token may depend on its own position alone.
        """
        return x

    def bias(self, start: int, length: int, seen: int) -> Float[Tensor, "heads length seen"] | None:
        """Return what is added to the scores Q K^T / sqrt(d_head), here None for nothing.

        Queries stand at `start` to start + length - 1, keys at 0 to seen - 1. The future and padding are
        hidden besides.
        """
        return None


class NoPosition(AttentionPosition):
    """No position at all (NoPE, Kazemnejad et al. 2023): the decoder has the order from its causal mask alone.

    The encoder, which has no causal mask, sees a bag of words.
    """


class RotaryPosition(AttentionPosition):
    """Rotary positions (RoFormer; Su et al. 2021, eq. 15 and section 3.4.2): queries and keys are rotated.

    At position m the features (2i, 2i + 1) of each head are taken as a point of the plane and turned by the angle
    m base^(-2i / d_head). A score then depends on positions only by their difference. Angles are computed in double
    precision and products in single precision at least, however the model is trained. Raises ValueError when d_head
    is odd.
    """

    def __init__(self, *, d_head: int, base: Positive = 10_000.0) -> None:
        super().__init__()
        if d_head % 2:
            raise ValueError(f"d_head must be even, as features are turned in pairs, got {d_head=}.")
        self.d_head, self.base = d_head, base

    def rotate(
        self, x: Float[Tensor, "batch heads length d_head"], start: int
    ) -> Float[Tensor, "batch heads length d_head"]:
        precise = torch.promote_types(x.dtype, torch.float32)
        angles = self.angles(start, x.size(2), x.device)
        cos, sin = torch.cos(angles).to(precise), torch.sin(angles).to(precise)
        left, right = x.to(precise).unflatten(-1, (-1, 2)).unbind(-1)
        turned = torch.stack([left * cos - right * sin, left * sin + right * cos], dim=-1)
        return turned.flatten(-2).to(x.dtype)

    def angles(self, start: int, length: int, device: torch.device) -> Float[Tensor, "length half"]:
        """Return the angle of each pair of features at each position."""
        position = torch.arange(start, start + length, dtype=torch.float64, device=device)[:, None]
        return position * self.base ** (
            -torch.arange(0, self.d_head, 2, dtype=torch.float64, device=device) / self.d_head
        )
