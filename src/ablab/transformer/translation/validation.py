"""Validation of translations during training: by the loss and by the BLEU of greedy search."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from ablab.transformer.data.batches import Batch, Index, Sentences, collate, like_lengths
from ablab.transformer.data.corpus import EXTRA_TOKENS
from ablab.transformer.data.prepared import Prepared
from ablab.transformer.data.scoring import Scoring, bleu
from ablab.transformer.decoding.translator import DecodingConfig, Translator, spread
from ablab.transformer.model.modes import evaluating
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.training.loss import SPREAD_TOKENS, VALID_TOKENS, to_device, token_loss, true_loss
from ablab.transformer.training.validation import Samples, Validation

SAMPLES = 8
"""Translations shown per validation."""


@dataclass(frozen=True)
class TranslationValidation(Validation):
    """The scores of one validation by loss and BLEU.

    `at_limit`: translations that reached the length limit; None for one of an older checkpoint.
    """

    columns: ClassVar[tuple[str, ...]] = (*Validation.columns, "bleu")
    higher_is_better: ClassVar[tuple[str, ...]] = ("bleu",)

    bleu: float
    at_limit: int | None = None

    @property
    def noted(self) -> dict[str, Any]:
        return {"at_limit": self.at_limit}

    @property
    def line(self) -> str:
        return f"{super().line}   BLEU {self.bleu:5.2f}"


class Validator:
    """Measures loss and greedy BLEU on the validation pairs, without random draws or side effects.

    The search is fixed, as validation selects the weights, which must not depend on how the test set is decoded.
    `first`: only so many pairs.
    """

    def __init__(self, prepared: Prepared, max_extra_tokens: int = EXTRA_TOKENS, *, first: int | None = None) -> None:
        self.search = DecodingConfig(beam_size=1, max_extra_tokens=max_extra_tokens)
        self.src, self.tgt = (side if first is None else side.first(first) for side in prepared.valid)
        self.sources = [src for src, _ in prepared.valid_text][:first]
        self.references = [tgt for _, tgt in prepared.valid_text][:first]
        self.tokenizers, self.scoring = prepared.tokenizers, Scoring(**prepared.scoring)

    def __call__(self, model: Any, step: int) -> tuple[TranslationValidation, Samples]:
        """Return the scores, and some of the translations they are computed from."""
        translations, cut = self._translate(model)
        found = bleu(translations, self.references, self.scoring)
        shown = list(zip(self.sources, self.references, translations, strict=True))[:SAMPLES]
        samples = Samples(("source", "reference", "translation"), shown)
        return TranslationValidation(step, self.loss(model), found, cut), samples

    def loss(self, model: Transformer) -> float:
        """Return the validation loss in nats per target token."""
        return loss_of_pairs(model, self.src, self.tgt)

    def bleu(self, model: Transformer) -> float:
        """Return the BLEU of greedy search on the validation pairs."""
        return bleu(self._translate(model)[0], self.references, self.scoring)

    def _translate(self, model: Transformer) -> tuple[list[str], int]:
        """Return the translations, and how many of them reached the length limit."""
        translator = Translator(model, self.tokenizers)
        ids = translator.ids(self.src, self.search)
        return translator.target.decode(ids), self.search.cut(self.src.lengths - 1, ids)


def loss_of_pairs(model: Transformer, src: Sentences, tgt: Sentences) -> float:
    """Return the loss without label smoothing, in nats per target token."""

    return true_loss(model, batches_of_pairs(src, tgt))


def batches_of_pairs(src: Sentences, tgt: Sentences) -> Iterator[Batch]:
    """Yield the pairs in batches of like lengths."""
    for rows in like_lengths(tgt.lengths, VALID_TOKENS):
        yield collate(src, tgt, rows)


def spread_loss(model: Transformer, src: Sentences, tgt: Sentences) -> float:
    """Return `loss_of_pairs`, up to rounding, in a quarter of its processor time: a thread takes a batch."""
    device = next(model.parameters()).device

    @torch.inference_mode()  # of the thread that calls
    def loss_of(rows: Index) -> tuple[float, int]:
        loss = token_loss(model, to_device(collate(src, tgt, rows), model), label_smoothing=0.0)
        return float(loss.true), loss.tokens

    with evaluating(model):
        batches = list(like_lengths(tgt.lengths, SPREAD_TOKENS))
        found = [loss for _, loss in spread(loss_of, batches, device)]
    # fsum: batches end in any order, and the sum must not depend on it.
    return math.fsum(total for total, _ in found) / sum(tokens for _, tokens in found)
