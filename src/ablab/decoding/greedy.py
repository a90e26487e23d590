"""Greedy search, and the maximum length of every search."""

import torch
from jaxtyping import Int
from torch import Tensor

from ablab.decoding.words import forbid
from ablab.model.tokens import BOS, EOS, PAD
from ablab.model.transformer import Transformer

COMPACT_BELOW = 0.8
"""Share of unfinished sentences below which the finished are dropped; to compact a batch is to copy, too."""

COUNT_EVERY = 8
"""Steps after which a search on another device than the CPU counts the unfinished sentences, for which it waits."""


def length_limits(src: Int[Tensor, "batch src_len"], max_extra_tokens: int) -> tuple[Int[Tensor, "batch"], int]:
    """Return the most target tokens of each sentence, source tokens + `max_extra_tokens`, and of all of them.

    The end of the sentence is not among them.
    """
    limits = ((src != PAD) & (src != EOS)).sum(dim=1) + max_extra_tokens
    return limits, int(limits.max())


def counts_after(position: int, device: torch.device) -> bool:
    """Return whether a search counts the unfinished sentences after its step at `position`: always, on the CPU."""
    return device.type == "cpu" or (position + 1) % COUNT_EVERY == 0


@torch.inference_mode()
def greedy(model: Transformer, src: Int[Tensor, "batch src_len"], *, max_extra_tokens: int) -> list[list[int]]:
    """Return the target ids of each sentence without BOS and EOS, at most source length + `max_extra_tokens` ids."""
    limits, longest = length_limits(src, max_extra_tokens)
    state = model.start(src, beams=1, max_len=longest + 1)
    rows = torch.arange(len(src), device=src.device)  # which sentence each row still decodes
    alive = torch.ones_like(rows, dtype=torch.bool)
    last = torch.full((len(src), 1), BOS, device=src.device)
    output = torch.full((len(src), longest + 1), EOS, device=src.device)

    for position in range(output.size(1)):
        logits = forbid(model.step(last, state)[:, 0])
        token = logits.argmax(dim=-1).masked_fill(limits[rows] == position, EOS).masked_fill(~alive, EOS)
        output[rows, position] = token
        alive &= token != EOS
        if counts_after(position, src.device):
            left = int(alive.sum())
            if left == 0:
                break
            if left < COMPACT_BELOW * len(rows):
                kept = alive.nonzero()[:, 0]
                state.keep(kept)
                rows, token, alive = rows[kept], token[kept], alive[kept]
        last = token[:, None]
    return [sentence[: sentence.index(EOS)] if EOS in sentence else sentence for sentence in output.tolist()]
