"""The next words of a hypothesis: which are likeliest, and how likely they are."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ablab.transformer.model.tokens import BOS, EOS, PAD

FORBIDDEN = slice(PAD, BOS + 1)
"""Padding and begin-of-sentence, which are neighbours: a list of them would be copied to the device at each step."""

WIDTH = 64
"""Words per group. The best words lie in the groups with the largest maxima, so that few have to be sorted."""


class NextWords(NamedTuple):
    """The `count` likeliest words of each hypothesis, the best first, and the end of the sentence."""

    log_probs: Float[Tensor, "batch beams count"]
    tokens: Int[Tensor, "batch beams count"]
    end: Float[Tensor, "batch beams"]


def forbid(logits: Float[Tensor, "*batch vocab"]) -> Float[Tensor, "*batch vocab"]:
    """Exclude padding and begin-of-sentence as the next token. Changes `logits` in place."""
    logits[..., FORBIDDEN] = -math.inf
    return logits


def next_words(logits: Float[Tensor, "batch beams vocab"], count: int) -> NextWords:
    """Return natural logarithms of the model's own probabilities: those of forbidden words count in their sum.

    `count` is at most the size of the vocabulary. Destroys `logits`: a copy would cost as much as all else here.
    """
    forbidden, end = logits[..., FORBIDDEN].clone(), logits[..., EOS].clone()
    best, tokens = largest(forbid(logits), count)
    most = torch.maximum(best[..., :1], forbidden.amax(dim=-1, keepdim=True))
    total = logits.sub_(most).exp_().sum(dim=-1, keepdim=True) + (forbidden - most).exp().sum(dim=-1, keepdim=True)
    normaliser = most + total.log()
    return NextWords(best - normaliser, tokens, end - normaliser[..., 0])


def largest(
    values: Float[Tensor, "*batch vocab"], count: int
) -> tuple[Float[Tensor, "*batch count"], Int[Tensor, "*batch count"]]:
    """Return the `count` largest values, the largest first, and their indices, as `topk` does, but faster."""
    vocab, groups = values.size(-1), values.size(-1) // WIDTH
    if groups <= count:
        return values.topk(count, dim=-1)
    grouped = values[..., : groups * WIDTH].unflatten(-1, (groups, WIDTH))
    chosen = grouped.amax(dim=-1).topk(count, dim=-1).indices[..., None]
    of_groups = grouped.gather(-2, chosen.expand(*chosen.shape[:-1], WIDTH)).flatten(-2)
    indices = (chosen * WIDTH + torch.arange(WIDTH, device=values.device)).flatten(-2)
    rest = torch.arange(groups * WIDTH, vocab, device=values.device).expand(*values.shape[:-1], -1)
    best, places = torch.cat([of_groups, values[..., groups * WIDTH :]], dim=-1).topk(count, dim=-1)
    return best, torch.cat([indices, rest], dim=-1).gather(-1, places)
