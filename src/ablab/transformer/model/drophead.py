"""DropHead: drops whole attention heads in training."""

import torch
from jaxtyping import Float
from torch import Tensor

from ablab.transformer.model.place import Place
from ablab.transformer.model.streams import SeededModule


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
