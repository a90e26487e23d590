"""What no search may do: go on for ever, or say what is not a word."""

import math

from jaxtyping import Float, Int
from torch import Tensor

from ablab.model.tokens import BOS, EOS, PAD


def length_limits(src: Int[Tensor, "batch src_len"], max_extra_tokens: int) -> Int[Tensor, "batch"]:
    """Most target tokens of each sentence, its end not counted: source tokens + `max_extra_tokens`."""
    return ((src != PAD) & (src != EOS)).sum(dim=1) + max_extra_tokens


def forbid(logits: Float[Tensor, "*batch vocab"]) -> Float[Tensor, "*batch vocab"]:
    """Padding and begin-of-sentence are never the next token. Changes `logits` in place."""
    logits[..., [PAD, BOS]] = -math.inf
    return logits
