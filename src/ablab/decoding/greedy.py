"""Greedy search, and the maximum length of every search."""

import torch
from jaxtyping import Int
from torch import Tensor

from ablab.decoding.words import forbid
from ablab.model.tokens import BOS, EOS, PAD
from ablab.model.transformer import Transformer


def length_limits(src: Int[Tensor, "batch src_len"], max_extra_tokens: int) -> Int[Tensor, "batch"]:
    """Return the most target tokens of each sentence, without its end: source tokens + `max_extra_tokens`."""
    return ((src != PAD) & (src != EOS)).sum(dim=1) + max_extra_tokens


COMPACT_BELOW = 0.8  # share of unfinished sentences below which the finished are dropped; compacting copies, too


@torch.inference_mode()
def greedy(model: Transformer, src: Int[Tensor, "batch src_len"], *, max_extra_tokens: int) -> list[list[int]]:
    """Return the target ids of each sentence without BOS and EOS, at most source length + `max_extra_tokens` ids."""
    limits = length_limits(src, max_extra_tokens)
    state = model.start(src, beams=1, max_len=int(limits.max()) + 1)
    rows = torch.arange(len(src), device=src.device)  # which sentence each row still decodes
    alive = torch.ones_like(rows, dtype=torch.bool)
    last = torch.full((len(src), 1), BOS, device=src.device)
    output = torch.full((len(src), int(limits.max()) + 1), EOS, device=src.device)

    for position in range(output.size(1)):
        logits = forbid(model.step(last, state)[:, 0])
        token = logits.argmax(dim=-1).masked_fill(limits[rows] == position, EOS).masked_fill(~alive, EOS)
        output[rows, position] = token
        alive &= token != EOS
        left = int(alive.sum())
        if left == 0:
            break
        if left < COMPACT_BELOW * len(rows):
            kept = alive.nonzero()[:, 0]
            state.keep(kept)
            rows, token, alive = rows[kept], token[kept], alive[kept]
        last = token[:, None]
    return [sentence[: sentence.index(EOS)] if EOS in sentence else sentence for sentence in output.tolist()]
