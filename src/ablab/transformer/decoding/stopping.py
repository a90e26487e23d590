"""When a search stops: the maximum length of a translation, and which sentences of a batch it goes on with."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ablab.transformer.model.tokens import EOS, PAD

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


def unfinished(going: Bool[Tensor, "rows"], position: int) -> Int[Tensor, "kept"] | None:
    """Return the rows of a batch that a search keeps after its step at `position`: those `going` on, or none.

    None instead of rows: all stay for now, since too few have ended, or since the search does not count at this step.
    """
    if not counts_after(position, going.device):
        return None
    left = int(going.sum())
    if left and left >= COMPACT_BELOW * len(going):
        return None
    return going.nonzero()[:, 0]


def counts_after(position: int, device: torch.device) -> bool:
    """Return whether a search counts the unfinished sentences after its step at `position`: always, on the CPU."""
    return device.type == "cpu" or (position + 1) % COUNT_EVERY == 0
