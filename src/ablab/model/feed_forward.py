"""The position-wise network."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class FeedForward(nn.Module):
    """W2 dropout(relu(W1 x + b1)) + b2 (Vaswani et al. 2017, eq. 2)."""

    def __init__(self, d_model: int, d_ff: int, dropout: nn.Module) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = dropout

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return self.outer(self.dropout(F.relu(self.inner(x))))
