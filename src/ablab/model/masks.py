"""Who may attend to whom: `True` = may attend, as in PyTorch's scaled_dot_product_attention."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ablab.model.tokens import PAD


def padding_mask(tokens: Int[Tensor, "batch length"]) -> Bool[Tensor, "batch 1 1 length"]:
    """Keys that are tokens, not padding; broadcasts over heads and queries."""
    return (tokens != PAD)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Bool[Tensor, "length length"]:
    """Position i may attend to positions 0..i (Vaswani et al. 2017, section 3.2.3)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
