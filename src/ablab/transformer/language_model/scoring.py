"""How well a model predicts documents: nats and right guesses of each, without ever holding all logits."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ablab.transformer.data.documents.prepared import SPELT_OUT
from ablab.transformer.data.documents.shards import Shard
from ablab.transformer.data.documents.windows import Window, windows
from ablab.transformer.language_model.scores import TESTED
from ablab.transformer.model.modes import as_products_take_it, evaluating
from ablab.transformer.model.products import product
from ablab.transformer.training.loss import Predictions, loss_rows, predict, to_device

WINDOW_TOKENS = 8192
"""Tokens of a batch of windows."""


class Predicted(NamedTuple):
    """By document, in the order of a shard: nats of its tokens and its end, and how many of them were the first guess.

    `spelt`: nats that spell out the characters which the vocabulary lacks. `tokens`, `bytes`: of the document.
    """

    nats: npt.NDArray[np.float64]
    right: npt.NDArray[np.float64]
    spelt: npt.NDArray[np.float64]
    tokens: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]

    @property
    def items(self) -> dict[str, list[list[float]]]:
        """Two summands per document for each score."""
        per_token = np.stack([self.nats, self.tokens], axis=1).tolist()
        return {
            "bits_per_byte": np.stack([self.nats + self.spelt, self.bytes], axis=1).tolist(),
            "loss": per_token,
            "perplexity": per_token,
            "accuracy": np.stack([self.right, self.tokens], axis=1).tolist(),
        }

    @property
    def scores(self) -> dict[str, float]:
        """The scores of all documents together."""
        sums = {key: np.array(rows, dtype=np.float64).sum(axis=0) for key, rows in self.items.items()}
        return {key: float(score.of_sums(sums[key])) for key, score in TESTED.items() if score.of_sums is not None}


@torch.inference_mode()
def predicted(model: Any, shard: Shard, context: int, progress: Callable[[int], None] = lambda _: None) -> Predicted:
    """Predict every token of a shard once, in windows of `context` tokens; the model evaluates meanwhile."""
    nats, right = (np.zeros(len(shard), dtype=np.float64) for _ in range(2))
    with evaluating(model):
        for window in windows_of(shard, context):
            of = window.of.numpy()
            for total, found in zip(
                (nats, right), of_tokens(predict(model, to_device(window.packed, model))), strict=True
            ):
                total += np.bincount(of, weights=found.cpu().double().numpy(), minlength=len(shard))
            progress(len(of))
    return Predicted(nats, right, (SPELT_OUT * shard.unknown).astype(np.float64), shard.lengths, shard.sizes)


def windows_of(shard: Shard, context: int, batch_tokens: int | None = None) -> Iterable[Window]:
    """Return windows over all documents of a shard. `batch_tokens`: of a batch, or one window; None: the usual."""
    return windows(shard, context=context, batch_tokens=batch_tokens or max(context, WINDOW_TOKENS))


def of_tokens(predictions: Predictions) -> tuple[Float[Tensor, "tokens"], Bool[Tensor, "tokens"]]:
    """Return the nats of each token, and whether the model's first guess is right, a chunk of logits at a time."""
    hidden, matrix, labels = as_products_take_it(predictions.hidden), predictions.matrix, predictions.labels
    table, nats, right = matrix.to(hidden.dtype).T, [], []
    for part in torch.arange(len(labels), device=labels.device).split(loss_rows(len(matrix), matrix.device)):
        logits = product(hidden[part], table)
        precise = torch.promote_types(logits.dtype, torch.float32)
        nats.append(-logits.log_softmax(dim=-1, dtype=precise).gather(1, labels[part, None])[:, 0])
        right.append(logits.argmax(dim=-1) == labels[part])
    return torch.cat(nats), torch.cat(right)
