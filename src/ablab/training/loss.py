"""Label-smoothed cross-entropy, from hidden vectors, summed over target tokens."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from ablab.data.steps import Batch
from ablab.model.tokens import PAD
from ablab.model.transformer import Transformer

CHUNK_ELEMENTS = 1 << 21
"""Logits held at a time (8 MB in fp32): they stay in the processor's cache between one pass and the next."""


class TokenLoss(NamedTuple):
    """Sums over target tokens, in nats: what is trained on, and that of the true distribution; and their number."""

    smoothed: Tensor
    true: Tensor
    tokens: int


def token_loss(model: Transformer, batch: Batch, label_smoothing: float) -> TokenLoss:
    """Loss of a batch. Hidden vectors become logits only where there is a token to predict."""
    hidden = model(batch.src, batch.tgt)
    is_token = batch.labels != PAD
    labels = batch.labels[is_token]
    smoothed, true = projected_cross_entropy(hidden[is_token], model.words.output_matrix(), labels, label_smoothing)
    return TokenLoss(smoothed, true, len(labels))


def projected_cross_entropy(
    hidden: Float[Tensor, "tokens d_model"],
    matrix: Float[Tensor, "vocab d_model"],
    labels: Int[Tensor, "tokens"],
    label_smoothing: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Sums of the smoothed loss and of the plain one, for logits = hidden @ matrix.T, which are never all held.

    Smoothed: (1 - e) (-log p_label) + e mean over the vocabulary of (-log p) (Szegedy et al. 2016, section 7; the
    same as `F.cross_entropy(label_smoothing=e)`). Only the smoothed sum has a gradient.
    """
    smoothed, true = _ProjectedCrossEntropy.apply(hidden, matrix, labels, label_smoothing)
    return smoothed, true


class _ProjectedCrossEntropy(torch.autograd.Function):
    """Computes the gradients with the loss, chunk by chunk, while the chunk's logits are at hand.

    d loss / d logits = p - (1 - e) onehot - e / V. The last term is the same for all logits, so its share of the
    gradients is added once at the end, from sums over rows, instead of in one more pass over every chunk.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, matrix: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        needs_gradient = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        vocab = matrix.size(0)
        smoothed = hidden.new_zeros((), dtype=torch.promote_types(hidden.dtype, torch.float32))
        true = torch.zeros_like(smoothed)
        d_hidden = torch.empty_like(hidden) if needs_gradient else None
        d_matrix = torch.zeros_like(matrix) if needs_gradient else None
        rows = max(1, CHUNK_ELEMENTS // vocab)
        for start in range(0, len(labels), rows):
            part = slice(start, start + rows)
            h, label = hidden[part], labels[part, None]
            log_p = F.linear(h, matrix).to(smoothed.dtype).log_softmax(dim=-1)
            nll = -log_p.gather(1, label).sum()
            true += nll
            smoothed += (1 - smoothing) * nll
            if smoothing:
                smoothed -= smoothing * log_p.sum() / vocab
            if d_hidden is not None and d_matrix is not None:
                gradient = log_p.exp_().scatter_add_(1, label, log_p.new_full(label.shape, smoothing - 1))
                gradient = gradient.to(matrix.dtype)
                d_hidden[part] = gradient @ matrix
                d_matrix.addmm_(gradient.T, h.to(matrix.dtype))
        if d_hidden is not None and d_matrix is not None and smoothing:
            d_hidden -= smoothing / vocab * matrix.sum(dim=0)
            d_matrix -= smoothing / vocab * hidden.sum(dim=0)
        ctx.save_for_backward(d_hidden, d_matrix)
        ctx.mark_non_differentiable(true)
        return smoothed, true

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, d_true: Tensor) -> tuple[Tensor, Tensor, None, None]:
        d_hidden, d_matrix = ctx.saved_tensors
        return d_hidden * d_smoothed, d_matrix * d_smoothed, None, None
