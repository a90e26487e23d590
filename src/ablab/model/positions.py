"""Position encodings: one vector per position, added to the scaled word embedding."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ablab.fields import Count


def sinusoid(length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """Return PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(same) (Vaswani et al. 2017, section 3.5)."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    wavelength = 10_000.0 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position / wavelength)
    table[:, 1::2] = torch.cos(position / wavelength)[:, : d_model // 2]
    return table


class SinusoidalPositions(nn.Module):
    """Fixed sinusoidal encodings; the table grows on demand, so that input length is not limited."""

    table: Tensor

    FIRST = 512  # initial number of positions in the table

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table", sinusoid(self.FIRST, d_model).float(), persistent=False)

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
