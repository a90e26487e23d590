"""Validation of a model during training by loss and BLEU, and comparison of validations."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from ablab.transformer.data.batches import Batch, Index, Sentences, collate, like_lengths
from ablab.transformer.data.corpus import EXTRA_TOKENS
from ablab.transformer.data.prepared import Prepared
from ablab.transformer.data.scoring import Scoring, bleu
from ablab.transformer.decoding.translator import DecodingConfig, Translator, spread
from ablab.transformer.model.modes import evaluating
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.training.loss import SPREAD_TOKENS, VALID_TOKENS, token_loss


@dataclass(frozen=True)
class Validation:
    """The scores of one validation. `loss`: nats per target token, without label smoothing.

    `at_limit`: translations that reached the length limit; None for one of an older checkpoint.
    """

    step: int
    loss: float
    bleu: float
    at_limit: int | None = None

    @property
    def perplexity(self) -> float:
        """exp(loss), per subword token."""
        return math.exp(min(self.loss, 700.0))

    def order(self, monitor: str) -> tuple[float, ...]:
        """Return what orders validations by the monitored score, the larger the better.

        Equal BLEU is ordered by the loss: BLEU is 0 as long as no four tokens in a row are right, or for ever where
        references are shorter, and the loss goes on telling good weights from bad ones.
        """
        return (self.bleu, -self.loss) if monitor == "bleu" else (-self.loss,)

    def better_than(self, other: "Validation | None", monitor: str) -> bool:
        """Compare by `order`. Equals and NaN are not better, so the first of equals stays best."""
        return other is None or self.order(monitor) > other.order(monitor)

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as plain values, perplexity included."""
        scores = {key: value for key, value in asdict(self).items() if key != "at_limit"}
        return {**scores, "perplexity": self.perplexity}


def best(validations: Sequence[Validation], monitor: str) -> Validation:
    """Return the best validation by its `order`, the first of equals."""
    leader: Validation | None = None
    for validation in validations:
        if validation.better_than(leader, monitor):
            leader = validation
    assert leader is not None, "no validation yet"
    return leader


class Validator:
    """Measures loss and greedy BLEU on the validation pairs, without random draws or side effects.

    The search is fixed, as validation selects the weights, which must not depend on how the test set is decoded.
    """

    def __init__(self, prepared: Prepared, max_extra_tokens: int = EXTRA_TOKENS) -> None:
        self.search = DecodingConfig(beam_size=1, max_extra_tokens=max_extra_tokens)
        self.src, self.tgt = prepared.valid
        self.sources = [src for src, _ in prepared.valid_text]
        self.references = [tgt for _, tgt in prepared.valid_text]
        self.tokenizers, self.scoring = prepared.tokenizers, Scoring(**prepared.scoring)

    def __call__(self, model: Transformer, step: int) -> tuple[Validation, list[str]]:
        """Return the scores and the translations they are computed from."""
        translations, cut = self._translate(model)
        found = bleu(translations, self.references, self.scoring)
        return Validation(step, self.loss(model), found, cut), translations

    def loss(self, model: Transformer) -> float:
        """Return the validation loss in nats per target token."""
        return true_loss(model, self.src, self.tgt)

    def bleu(self, model: Transformer) -> float:
        """Return the BLEU of greedy search on the validation pairs."""
        return bleu(self._translate(model)[0], self.references, self.scoring)

    def _translate(self, model: Transformer) -> tuple[list[str], int]:
        """Return the translations, and how many of them reached the length limit."""
        translator = Translator(model, self.tokenizers)
        ids = translator.ids(self.src, self.search)
        return translator.target.decode(ids), self.search.cut(self.src.lengths - 1, ids)


@torch.inference_mode()
def true_loss(model: Transformer, src: Sentences, tgt: Sentences) -> float:
    """Return the loss without label smoothing, in nats per target token."""
    device = next(model.parameters()).device
    total, tokens = 0.0, 0
    with evaluating(model):
        for rows in like_lengths(tgt.lengths, VALID_TOKENS):
            batch = collate(src, tgt, rows)
            loss = token_loss(model, Batch(*(side.to(device) for side in batch)), label_smoothing=0.0)
            total += float(loss.true)
            tokens += loss.tokens
    return total / tokens


def spread_loss(model: Transformer, src: Sentences, tgt: Sentences) -> float:
    """Return the loss of `true_loss`, up to rounding, in a quarter of its processor time: a thread takes a batch."""
    device = next(model.parameters()).device

    @torch.inference_mode()  # of the thread that calls
    def loss_of(rows: Index) -> tuple[float, int]:
        batch = collate(src, tgt, rows)
        loss = token_loss(model, Batch(*(side.to(device) for side in batch)), label_smoothing=0.0)
        return float(loss.true), loss.tokens

    with evaluating(model):
        batches = list(like_lengths(tgt.lengths, SPREAD_TOKENS))
        found = [loss for _, loss in spread(loss_of, batches, device)]
    # fsum: batches end in any order, and the sum must not depend on it.
    return math.fsum(total for total, _ in found) / sum(tokens for _, tokens in found)
