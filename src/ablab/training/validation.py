"""How good the model is right now, on the validation set; and which of the validations so far is the best."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from ablab.data.batches import Batch, Sentences, collate, like_lengths
from ablab.data.prepared import Prepared
from ablab.decoding.translator import DecodingConfig, Translator
from ablab.model.modes import evaluating
from ablab.model.transformer import Transformer
from ablab.scoring import bleu
from ablab.training.chunks import VALID_TOKENS
from ablab.training.loss import token_loss


@dataclass(frozen=True)
class Validation:
    """One validation. `loss`: nats per target token of the true distribution, label smoothing apart."""

    step: int
    loss: float
    bleu: float

    @property
    def perplexity(self) -> float:
        """e to the loss, per subword token."""
        return math.exp(min(self.loss, 700.0))

    def better_than(self, other: "Validation | None", monitor: str) -> bool:
        """By the monitored score; the first of equals stays the best. NaN is never better."""
        if other is None:
            return True
        return self.bleu > other.bleu if monitor == "bleu" else self.loss < other.loss

    def as_dict(self) -> dict[str, Any]:
        """Plain values, perplexity included."""
        return {**asdict(self), "perplexity": self.perplexity}


def best(validations: Sequence[Validation], monitor: str) -> Validation:
    """The best one so far."""
    leader: Validation | None = None
    for validation in validations:
        if validation.better_than(leader, monitor):
            leader = validation
    assert leader is not None, "no validation yet"
    return leader


class Validator:
    """Measures loss and greedy BLEU on the validation pairs; draws nothing and changes nothing.

    The search is fixed: validation chooses the weights, and how the test set is decoded must not.
    """

    SEARCH = DecodingConfig(beam_size=1, max_extra_tokens=50)

    def __init__(self, prepared: Prepared) -> None:
        self.src, self.tgt = prepared.valid
        self.sources = [src for src, _ in prepared.valid_text]
        self.references = [tgt for _, tgt in prepared.valid_text]
        self.tokenizers = prepared.tokenizers

    def __call__(self, model: Transformer, step: int) -> tuple[Validation, list[str]]:
        """The scores, and the translations they come from."""
        translations = self._translate(model)
        return Validation(step, self.loss(model), bleu(translations, self.references)), translations

    def loss(self, model: Transformer) -> float:
        """Nats per target token."""
        return true_loss(model, self.src, self.tgt)

    def bleu(self, model: Transformer) -> float:
        """Of greedy search."""
        return bleu(self._translate(model), self.references)

    def _translate(self, model: Transformer) -> list[str]:
        return Translator(model, self.tokenizers).best(self.src, self.SEARCH)


@torch.inference_mode()
def true_loss(model: Transformer, src: Sentences, tgt: Sentences) -> float:
    """Nats per target token."""
    device = next(model.parameters()).device
    total, tokens = 0.0, 0
    with evaluating(model):
        for rows in like_lengths(tgt.lengths, VALID_TOKENS):
            batch = collate(src, tgt, rows)
            loss = token_loss(model, Batch(*(side.to(device) for side in batch)), label_smoothing=0.0)
            total += float(loss.true)
            tokens += loss.tokens
    return total / tokens
