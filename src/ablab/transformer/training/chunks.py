"""Chunk sizes of the loss and of validation. They decide the order of sums; changing them changes only rounding."""

import torch

ROWS = 512
"""Hidden vectors per chunk of logits on a CPU.

Each chunk reads and writes the table and its gradient once, which fewer rows would not repay; the logits of more rows
leave the cache. At every vocabulary and width measured, in fp32 and bf16, the time is within about a tenth of that of
the best power of 2 (`python -m benchmarks.speed.chunks`; docs/performance.md has the figures).
"""

LOGITS = 1 << 24
"""Most logits held at a time: 64 MB in fp32, reached by vocabularies of 32,768 and more. There are two such buffers."""

LOGITS_ON_GPU = 1 << 25
"""Most logits held at a time on a GPU; large, so that it need not wait for work. Chosen by memory, not measured."""

VALID_TOKENS = 8192
"""Padded target tokens per batch of the validation loss."""

SPREAD_TOKENS = 1024
"""Padded target tokens per batch where batches are spread over threads; few, so that no thread waits long at the end.
"""


def loss_rows(vocab: int, device: torch.device) -> int:
    """Return the number of hidden vectors whose logits the loss holds at a time."""
    if device.type == "cpu":
        return max(1, min(ROWS, LOGITS // vocab))
    return max(1, LOGITS_ON_GPU // vocab)
