"""The scores of a language model's run, and what they depend on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from ablab.tasks.score import Recipe, Scale, Score
from ablab.transformer.config.training import BEST_OF_SEVERAL

Sums = npt.NDArray[np.float64]


def bits_per_byte(nats: Any, size: Any) -> Any:
    """Return bits per byte of text of so many nats and bytes."""
    return nats / size / log(2)


def share(sums: Sums) -> Any:
    """Return the first sum over the second, [..., 2]."""
    return sums[..., 0] / sums[..., 1]


def percent(sums: Sums) -> Any:
    """Return the first sum in percent of the second, [..., 2]."""
    return 100 * share(sums)


def perplexity(sums: Sums) -> Any:
    """Return exp(nats per token), from sums of nats and of tokens, [..., 2]; that of 700 nats and more is one."""
    return np.exp(np.minimum(share(sums), 700.0))


OF_NO_TOKENIZER = ("data.valid_pairs", "data.valid_documents")
"""Fields of a recipe's `data` that decide no tokenizer."""


def _vocabulary(recipe: Recipe) -> Mapping[str, Any]:
    """Return what decides the tokens of a flat recipe: bytes are the same for every text, and so is a given file."""
    tokenizer = str(recipe.get("data.tokenizer", "bpe"))  # which a recipe leaves out, where it is of sentence pairs
    if tokenizer == "byte" or tokenizer not in ("char", "bpe", "unigram"):
        return {"data.tokenizer": tokenizer}
    return {key: value for key, value in recipe.items() if key.startswith("data.") and key not in OF_NO_TOKENIZER}


BITS = "bits per byte"
PER_TOKEN = Scale("is per token, and the vocabularies differ", _vocabulary, BITS)

VALID_BITS, VALID_LOSS = "valid_bits_per_byte", "valid_loss"

TESTED: Mapping[str, Score] = {
    "bits_per_byte": Score(
        "test bits per byte",
        BITS,
        4,
        False,
        "test",
        "bits_per_byte",
        None,
        VALID_BITS,
        absurd=1.0,
        of_sums=lambda sums: bits_per_byte(sums[..., 0], sums[..., 1]),
    ),
    "loss": Score(
        *("test loss", "nats per token", 4, False, "test", "loss", PER_TOKEN, VALID_LOSS), absurd=0.5, of_sums=share
    ),
    "perplexity": Score(
        *("test perplexity", "", 2, False, "test", "perplexity", PER_TOKEN, VALID_LOSS), of_sums=perplexity
    ),
    "accuracy": Score(
        *("test next-token accuracy", "%", 2, True, "test", "accuracy", PER_TOKEN, VALID_LOSS), of_sums=percent
    ),
}
"""By their keys in an evaluation. Each is made of two sums over documents."""

ENOUGH = {"bits_per_byte": 0.01, "loss": 0.01, "perplexity": 0.05, "accuracy": 0.25}
"""The largest gain over the last fifth of training that still counts as converged."""


def _validated(score: Score) -> Score:
    title = f"validation {score.title.removeprefix('test ')}"
    return replace(score, title=title, place="validation", converged=None, enough=ENOUGH[score.key], of_sums=None)


SCORES: Mapping[str, Score] = {
    **{f"test_{key}": score for key, score in TESTED.items()},
    **{f"valid_{key}": _validated(score) for key, score in TESTED.items()},
}
"""Scores of quality, by their names in experiment files."""


PAIRS = ("data.side", "data.lowercase")
"""What of sentence pairs is read, which their digest, that of both sides as they are, does not say."""

VALIDATED = ("data.valid_pairs", "data.valid_documents", "data.valid_share")
"""How much text validation reads."""


@dataclass(frozen=True)
class OfAText(Scale):
    """A scale of one text, which these keys of a recipe choose: of another, nothing can be compared instead."""

    keys: Sequence[str] = PAIRS

    def unlike(self, title: str, recipes: Iterable[Recipe]) -> str | None:
        given = list(recipes)
        known = [{key: one.get(key) for other in given for key in other} for one in given]  # what one lacks differs
        text = Scale("is that of a text, and the texts differ", lambda one: {key: one.get(key) for key in self.keys})
        return text.unlike(title, known) or super().unlike(title, known)


def _of_a_text(score: Score) -> Score:
    own, keys = score.scale, (*PAIRS, *VALIDATED) if score.place == "validation" else PAIRS
    if own is None:
        return replace(score, scale=OfAText("", lambda _: {}, keys=keys))
    return replace(score, scale=OfAText(own.reason, own.settings, own.instead, keys))


COMPARED: Mapping[str, Score] = {name: _of_a_text(score) for name, score in SCORES.items()}
"""The same, with what runs must share to be compared by them."""

COSTS: Mapping[str, Score] = {
    "training_speed": Score("training speed", "tokens/s", 0, True, "training", "tokens_per_second"),
    "memory": Score("peak memory of training", "MiB", 0, False, "training", "peak_memory_mib"),
}
"""Speed and memory, by their names in experiment files. They also depend on the machine and its load."""


def chosen_by(metric: str, recipe: Recipe) -> str | None:
    """Return what this metric chose, in words, where it chose the weights whose score it is; None if it did not.

    With one tokenizer the loss, perplexity and bits per byte order weights alike.
    """
    is_monitored = metric in (VALID_BITS, VALID_LOSS, "valid_perplexity")
    return BEST_OF_SEVERAL.get(str(recipe.get("training.select"))) if is_monitored else None
