"""Whole words hidden from the model's input."""

import torch
from jaxtyping import Int
from torch import Tensor

from ablab.model.streams import Stochastic
from ablab.model.tokens import BOS, EOS, PAD, UNK


class WordDropout(Stochastic):
    """Replaces each input token by UNK with probability `drop_prob`, in training only.

    As in Nguyen & Salazar 2019 (appendix A): the unknown word, not a zero vector. Begin, end and padding stay.
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
