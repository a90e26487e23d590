"""The scores of a translation run, what they depend on, and the pictures of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ablab.tasks.score import Recipe, Scale, Score
from ablab.transformer.config.training import BEST_OF_SEVERAL
from ablab.transformer.data.corpus import is_file, text_settings, vocabulary_settings
from ablab.transformer.data.scoring import corpus_bleu


def _of_text(*keys: str) -> Callable[[Recipe], Mapping[str, Any]]:
    return lambda recipe: {key: value for key, value in text_settings(recipe).items() if key in keys}


NATS = "nats per character"
"""Unit of the losses that do not depend on the vocabulary: of the raw references' characters, in any tokens."""

TOKEN_NATS = "nats per token"

PER_TOKEN = Scale("is per token, and the vocabularies differ", vocabulary_settings, NATS)
LETTERS = Scale("depends on the case of letters, which differs", _of_text("data.lowercase"))


def _characters(recipe: Recipe) -> Mapping[str, Any]:
    """Return what decides which characters a model tells apart: a tokenizer that is given has a rule of its own."""
    found = text_settings(recipe)
    by = "data.tokenizer" if is_file(str(found.get("data.tokenizer"))) else "data.normalization"
    return {"data.lowercase": found.get("data.lowercase"), "data.normalization": found.get(by)}


CHARACTERS = Scale("depends on which characters a model tells apart, which differs", _characters)
WORDS = Scale(
    "depends on how the text is read and cut into words, which differs",
    _of_text("data.lowercase", "data.bleu_tokenizer"),
)

VALID_BLEU, VALID_LOSS, VALID_LOSS_PER_CHARACTER = "valid_bleu", "valid_loss", "valid_loss_per_character"

BLEU = Score("BLEU", "BLEU", 2, True, "test", "bleu", WORDS, VALID_BLEU, absurd=10.0)
CHRF = Score("chrF", "chrF", 2, True, "test", "chrf", LETTERS, VALID_BLEU, absurd=10.0)
LOSS = Score("loss", TOKEN_NATS, 4, False, "test", "loss", PER_TOKEN, VALID_LOSS, absurd=0.5)
PER_CHARACTER = Score(
    "loss per character",
    NATS,
    4,
    False,
    "test",
    "loss_per_character",
    CHARACTERS,
    VALID_LOSS_PER_CHARACTER,
    absurd=0.125,
)


def _tested(score: Score) -> Score:
    return replace(score, title=f"test {score.title}")


def _validated(score: Score, enough: float) -> Score:
    return replace(score, title=f"validation {score.title}", place="validation", converged=None, enough=enough)


SCORES: Mapping[str, Score] = {
    "test_bleu": replace(_tested(BLEU), of_sums=corpus_bleu),
    "test_chrf": _tested(CHRF),
    "test_loss": _tested(LOSS),
    "test_loss_per_character": _tested(PER_CHARACTER),
    VALID_BLEU: _validated(BLEU, 0.5),
    VALID_LOSS: _validated(LOSS, 0.01),
    VALID_LOSS_PER_CHARACTER: _validated(PER_CHARACTER, 0.0025),
}
"""Scores of quality, by their names in experiment files."""

COSTS: Mapping[str, Score] = {
    "training_speed": Score("training speed", "target tokens/s", 0, True, "training", "tokens_per_second"),
    "decoding_speed": Score("decoding speed", "sentences/s", 0, True, "evaluating", "sentences_per_second"),
    "memory": Score("peak memory of training", "MiB", 0, False, "training", "peak_memory_mib"),
}
"""Speeds and memory, by their names in experiment files. They also depend on the machine and its load."""

MONITORED = {VALID_LOSS: "loss", VALID_BLEU: "bleu"}
"""Metrics by which training may select weights, and their values of training.monitor."""


def chosen_by(metric: str, recipe: Recipe) -> str | None:
    """Return what this metric chose, in words, where it chose the weights whose score it is; None if it did not.

    recipe: flat, with dotted names. `averaged` is no such method: the score says only where the averaged weights end,
    and their mean is validated afterwards. Nor is a metric that is not monitored, or a setting tuned on other seeds.
    """
    is_monitored = metric in MONITORED and recipe.get("training.monitor") == MONITORED[metric]
    return BEST_OF_SEVERAL.get(str(recipe.get("training.select"))) if is_monitored else None
