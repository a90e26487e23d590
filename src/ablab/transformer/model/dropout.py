"""Dropout of single elements, with cheap random numbers on the CPU, of whole input words, and of whole heads."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from ablab.transformer.model.place import Place
from ablab.transformer.model.streams import SeededModule
from ablab.transformer.model.tokens import BOS, EOS, PAD, UNK

LEVELS = 1 << 16
"""Number of values of the 16 random bits drawn per element on the CPU; rates are multiples of 1 / LEVELS."""


class Dropout(SeededModule):
    """Zeroes each element with probability `drop_prob` and scales the rest by 1 / (1 - drop_prob), in training only.

    On the CPU, where drawing a float per element would be most of the cost, 16 bits are drawn per element and the rate
    is rounded to a multiple of 1/65536 (0.1 becomes 0.10001). The scale uses the rounded rate, and has the precision of
    the elements: the expected multiplier is 1 in float32, and 0.998 in bfloat16 at a rate of 0.1.
    """

    def __init__(self, drop_prob: float) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    @property
    def rate(self) -> float:
        """The probability that an element is zeroed now; 0 in evaluation."""
        return self.drop_prob if self.training else 0.0

    def forward(self, x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        if self.rate == 0:
            return x
        if x.device.type != "cpu":
            self.reseed_default()
            return F.dropout(x, self.rate)
        return x * self.multipliers(x)

    def multipliers(self, x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Draw 0 or the scale for each element of x, which is on the CPU, from this module's stream."""
        threshold = round(self.rate * LEVELS)
        # Four draws from each 64-bit number.
        bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64)
        bits.random_(-(2**63), None, generator=self.generator)
        draws = bits.view(torch.int16)[: x.numel()].view(x.shape)
        kept = x.new_tensor(LEVELS / (LEVELS - threshold))
        return torch.where(draws >= threshold - LEVELS // 2, kept, x.new_zeros(()))

    def extra_repr(self) -> str:
        """Return the rate, for the model's printed form."""
        return f"drop_prob={self.drop_prob}"


class WordDropout(SeededModule):
    """Replaces each input token by UNK with probability `drop_prob`, in training only.

    The replacement is the unknown word, not a zero vector (Nguyen & Salazar 2019, appendix A). BOS, EOS and PAD stay.
    """

    def __init__(self, drop_prob: float) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
        if not self.training or self.drop_prob == 0:
            return tokens
        hidden = (torch.rand(tokens.shape, generator=self.generator) < self.drop_prob).to(
            tokens.device, non_blocking=True
        )
        words = (tokens != PAD) & (tokens != BOS) & (tokens != EOS)
        return tokens.masked_fill(hidden & words, UNK)


class DropHead(SeededModule):
    """Drops each head of each sentence with probability `drop_prob`; scales the kept heads by H / kept.

    Follows Zhou et al. 2020: draws per sentence, head and attention site, and applies to the heads' outputs. Where all
    heads of a sentence would be dropped, the one with the largest draw stays. All heads are drawn alike and the
    multipliers of a sentence always sum to H, so a head's expected multiplier is exactly 1; it would be 1 - p^H if all
    heads could be dropped. Keeping one head instead of drawing again needs one draw of fixed size at every rate.
    """

    def __init__(self, num_heads: int, place: Place) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.place = place
        self.drop_prob = 0.0

    def forward(self, heads: Float[Tensor, "batch heads length d_head"]) -> Float[Tensor, "batch heads length d_head"]:
        if not self.training or self.drop_prob == 0:
            return heads
        multiplier = self.multipliers(heads.size(0)).to(heads, non_blocking=True)
        return heads * multiplier[:, :, None, None]

    def multipliers(self, sentences: int) -> Float[Tensor, "batch heads"]:
        """Draw the multiplier of each head: 0 if dropped, H / kept if kept."""
        draw = torch.rand(sentences, self.num_heads, generator=self.generator)
        kept = (draw >= self.drop_prob) | (draw == draw.amax(dim=1, keepdim=True))
        return kept * (self.num_heads / kept.sum(dim=1, keepdim=True))
