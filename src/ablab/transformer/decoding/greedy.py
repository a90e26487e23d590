"""Greedy search."""

import torch
from jaxtyping import Int
from torch import Tensor

from ablab.transformer.decoding.stopping import length_limits, unfinished
from ablab.transformer.decoding.words import forbid
from ablab.transformer.model.tokens import BOS, EOS
from ablab.transformer.model.transformer import Transformer


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
        last = token[:, None]
        if (kept := unfinished(alive, position)) is not None:
            if len(kept) == 0:
                break
            state.keep(kept)
            rows, last, alive = rows[kept], last[kept], alive[kept]
    return [sentence[: sentence.index(EOS)] if EOS in sentence else sentence for sentence in output.tolist()]
