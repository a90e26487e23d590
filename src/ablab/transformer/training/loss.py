"""Losses of training, and what they are made of: predictions, label-smoothed cross-entropy, sums over tokens in chunks.

The sizes of chunks, in training and in validation, decide the order of sums; changing them changes only rounding.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ablab.transformer.data.batches import MicroBatch
from ablab.transformer.model.modes import as_products_take_it, evaluating
from ablab.transformer.model.products import add_product, linear, product
from ablab.transformer.model.transformer import TokenModel

ROWS = 512
"""Hidden vectors per chunk of logits on a CPU.

Each chunk reads and writes the table and its gradient once, which fewer rows would not repay; the logits of more rows
leave the cache. At every vocabulary and width measured, in fp32 and bf16, the time is within about a tenth of that of
the best power of 2 (`python -m benchmarks.speed.chunks`; docs/performance.md has the figures).
"""

LOGITS = 1 << 24
"""Most logits held at a time: 64 MB in fp32, reached by vocabularies of 32,768 and more. There are two such buffers."""

LOGITS_ON_GPU = 1 << 27
"""Most logits held at a time on a GPU: 512 MB in fp32, twice.

On an H200, steps of `base` take 1.13 times as long with a quarter of them, and no less with four times as many
(docs/performance.md).
"""


VALID_TOKENS = 8192
"""Padded target tokens per batch of the validation loss."""

SPREAD_TOKENS = 1024
"""Padded target tokens per batch where batches are spread over threads; few, so that no thread waits long at the end.
"""


class TokenLoss(NamedTuple):
    """Loss sums over target tokens, in nats: `total`, which training minimises, and `true`, plain cross-entropy.

    Only `total` has a gradient. `tokens` is the number of target tokens.
    """

    total: Tensor
    true: Tensor
    tokens: int


TrainingLoss = Callable[[TokenModel, Any], TokenLoss]
"""A loss of training. It keeps nothing between calls, and each call of the model within it draws anew."""


class Predictions(NamedTuple):
    """One pass of the model over the tokens to predict: logits = hidden @ matrix.T, without padding."""

    hidden: Float[Tensor, "tokens d_model"]
    matrix: Float[Tensor, "vocab d_model"]
    labels: Int[Tensor, "tokens"]


def token_loss(model: TokenModel, batch: MicroBatch, label_smoothing: float) -> TokenLoss:
    """Compute the label-smoothed cross-entropy of a batch, in one pass of the model."""
    return cross_entropy(predict(model, batch), label_smoothing)


def predict(model: TokenModel, batch: MicroBatch) -> Predictions:
    """Run the model. Hidden vectors become logits only where there is a token to predict."""
    hidden = model(*batch.inputs).flatten(0, 1).index_select(0, batch.real)
    labels = batch.labels.flatten().index_select(0, batch.real)
    matrix = model.words.output_matrix()
    if model.output_bias is not None:  # as one more column, the feature of which is 1
        hidden = torch.cat([hidden, hidden.new_ones(len(hidden), 1)], dim=1)
        matrix = torch.cat([matrix, model.output_bias[:, None].to(matrix.dtype)], dim=1)
    return Predictions(hidden, matrix, labels)


@torch.inference_mode()
def true_loss(model: TokenModel, batches: Iterable[MicroBatch]) -> float:
    """Return the loss without label smoothing, in nats per predicted token; the model evaluates meanwhile."""
    total, tokens = 0.0, 0
    with evaluating(model):
        for batch in batches:
            loss = token_loss(model, to_device(batch, model), label_smoothing=0.0)
            total += float(loss.true)
            tokens += loss.tokens
    return total / tokens


def to_device(batch: Any, model: TokenModel) -> Any:
    """Return a batch, a named tuple of tensors, on the device of a model."""
    device = next(model.parameters()).device
    return type(batch)(*(tensor.to(device) for tensor in batch))


def cross_entropy(predictions: Predictions, label_smoothing: float) -> TokenLoss:
    """Return the label-smoothed and the plain cross-entropy of predictions."""
    smoothed, true = projected_cross_entropy(*predictions, label_smoothing)
    return TokenLoss(smoothed, true, len(predictions.labels))


def sum_over_tokens(function: Callable[..., Tensor], *passes: Predictions) -> Float[Tensor, ""]:
    """Sum `function(labels, log_probs, ...)` over chunks of tokens, with log-probabilities of each of the passes.

    The function gets labels [rows] and, for every pass, log-probabilities [rows, vocab] in float32 or better; it
    returns a sum over rows. A chunk is computed again in the backward pass, so that no more than one is ever held.
    """

    def of_chunk(part: slice) -> Tensor:
        return function(labels[part], *(_log_probs(each.hidden[part], each.matrix) for each in passes))

    labels, matrix = passes[0].labels, passes[0].matrix
    rows = max(1, loss_rows(len(matrix), matrix.device) // len(passes))
    parts = [slice(start, start + rows) for start in range(0, len(labels), rows)]
    sums = [checkpoint(of_chunk, part, use_reentrant=False) for part in parts]
    return torch.stack(sums).sum()


def _log_probs(hidden: Tensor, matrix: Tensor) -> Float[Tensor, "rows vocab"]:
    hidden = as_products_take_it(hidden)
    logits = linear(hidden, matrix.to(hidden.dtype))
    return logits.log_softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))


def loss_rows(vocab: int, device: torch.device) -> int:
    """Return the number of hidden vectors whose logits the loss holds at a time."""
    if device.type == "cpu":
        return max(1, min(ROWS, LOGITS // vocab))
    return max(1, LOGITS_ON_GPU // vocab)


def projected_cross_entropy(
    hidden: Float[Tensor, "tokens d_model"],
    matrix: Float[Tensor, "vocab d_model"],
    labels: Int[Tensor, "tokens"],
    label_smoothing: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return the sums of the smoothed and the plain loss for logits = hidden @ matrix.T, never held all at once.

    Smoothed: (1 - e) (-log p_label) + e mean over the vocabulary of (-log p) (Szegedy et al. 2016, section 7; the
    same as `F.cross_entropy(label_smoothing=e)`). Only the smoothed sum has a gradient.
    """
    # Its forward pass computes gradients for whatever requires one, even where nothing will ask for them.
    table = matrix if torch.is_grad_enabled() else matrix.detach()
    smoothed, true = _ProjectedCrossEntropy.apply(as_products_take_it(hidden), table, labels, label_smoothing)
    return smoothed, true


class _ProjectedCrossEntropy(torch.autograd.Function):
    """Cross-entropy that computes its gradients in the forward pass, chunk by chunk, while a chunk's logits exist.

    d loss / d logits = p - (1 - e) onehot - e / V. The last term is the same for all logits, so its share of the
    gradients is added once at the end, from sums over rows, instead of in another pass over every chunk.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, matrix: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        needs_gradient = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        vocab, precise = matrix.size(0), torch.promote_types(hidden.dtype, torch.float32)
        table = matrix.to(hidden.dtype)
        d_hidden = torch.empty_like(hidden) if needs_gradient else None
        d_matrix = torch.zeros_like(matrix) if needs_gradient else None
        true = normalisers = hidden.new_zeros((), dtype=precise)
        rows = max(1, min(len(labels), loss_rows(vocab, hidden.device)))
        # Two buffers for all chunks: allocating such memory costs as much as a pass over it.
        logits_of, p_of = (hidden.new_empty((rows, vocab), dtype=dtype) for dtype in (hidden.dtype, precise))
        for start in range(0, len(labels), rows):
            part = slice(start, start + rows)
            h, label = hidden[part], labels[part, None]
            logits, p = logits_of[: len(h)], p_of[: len(h)]
            logits = product(h, table.T, out=logits)
            torch.softmax(logits, dim=-1, dtype=precise, out=p)
            # log sum exp, from the largest p, which cannot underflow; so exp is taken of every logit only once.
            normaliser = logits.amax(dim=-1).to(precise) - p.amax(dim=-1).log()
            normalisers = normalisers + normaliser.sum()
            true = true + (normaliser - logits.gather(1, label)[:, 0]).sum()
            if d_hidden is not None and d_matrix is not None:
                p.scatter_add_(1, label, p.new_full(label.shape, smoothing - 1))
                # Rounded only here: of a token that the model is sure of, p - 1 is as small as a step of bfloat16 at 1.
                d_logits = p if p.dtype == h.dtype else logits.copy_(p)
                d_hidden[part] = product(d_logits, table, out=d_hidden[part])
                add_product(d_matrix, d_logits, h)
        of_hidden, of_table = hidden.sum(dim=0, dtype=precise), matrix.sum(dim=0, dtype=precise)
        # The mean over the vocabulary of -log p: all logits of a row add up to its vector times the table's sum.
        smoothed = (1 - smoothing) * true + smoothing * (normalisers - (of_hidden * of_table).sum() / vocab)
        if d_hidden is not None and d_matrix is not None and smoothing:
            d_hidden -= (smoothing / vocab * of_table).to(hidden.dtype)
            d_matrix -= (smoothing / vocab * of_hidden).to(matrix.dtype)
        ctx.save_for_backward(d_hidden, d_matrix)
        ctx.mark_non_differentiable(true)
        return smoothed, true

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, d_true: Tensor) -> tuple[Tensor, Tensor, None, None]:
        d_hidden, d_matrix = ctx.saved_tensors
        return d_hidden * d_smoothed, d_matrix * d_smoothed, None, None
