"""How much is computed at a time. That decides the order of sums, so a change here moves rounding and nothing else."""

import torch

ROWS = 512
"""Hidden vectors that become logits together, on a CPU.

So many are worth what is read and written once a chunk, the table and its gradient; the logits of more leave the cache.
At every vocabulary and width that was measured, in fp32 and in bf16, it takes within about a tenth of the time of the
best power of 2 (`python -m benchmarks.speed.chunks`; docs/performance.md has the figures).
"""

LOGITS = 1 << 24
"""Logits held at a time at most: 64 MB in fp32, for a vocabulary of 32,768 and above. There are two such buffers."""

LOGITS_ON_GPU = 1 << 25
"""The same on a GPU, which should not wait for its next piece of work; chosen by memory, nothing was measured."""

VALID_TOKENS = 8192
"""Padded target tokens whose validation loss is computed together."""


def loss_rows(vocab: int, device: torch.device) -> int:
    """Hidden vectors whose logits the loss holds at a time."""
    if device.type == "cpu":
        return max(1, min(ROWS, LOGITS // vocab))
    return max(1, LOGITS_ON_GPU // vocab)
