"""Who may attend to whom: `True` = may attend, as in PyTorch's scaled_dot_product_attention."""

from jaxtyping import Bool, Int
from torch import Tensor

from ablab.model.tokens import PAD


def padding_mask(tokens: Int[Tensor, "batch length"]) -> Bool[Tensor, "batch 1 1 length"]:
    """Keys that are tokens, not padding; broadcasts over heads and queries."""
    return (tokens != PAD)[:, None, None, :]
