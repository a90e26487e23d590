"""Scores of a trained run: title, unit and direction of each, and where it stands in the run's files."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablab.fields import as_typed
from ablab.store.records import AnyEvaluation, Record, Selected
from ablab.transformer.data.corpus import text_settings, vocabulary_settings

Value = Callable[[Record, AnyEvaluation | None], float | None]
"""Reads a score from a run's record and evaluation; None where they do not hold it."""


Recipe = Mapping[str, Any]
"""Flat, with dotted names."""


@dataclass(frozen=True)
class Scale:
    """What runs must share so that their values of a score are in one measure.

    `reason`: why values cannot be compared otherwise; `instead`: what can. `settings`: those of a recipe that decide.
    """

    reason: str
    settings: Callable[[Recipe], Mapping[str, Any]]
    instead: str = ""

    def unlike(self, title: str, recipes: Iterable[Recipe]) -> str | None:
        """Return why the score of this title cannot be compared between runs of these recipes; None if it can."""
        found = [self.settings(recipe) for recipe in recipes]
        if all(settings == found[0] for settings in found):
            return None
        instead = f"; {self.instead} can be compared" if self.instead else ""
        return f"{title} {self.reason} ({_differing(found)}){instead}"


def _differing(found: Iterable[Mapping[str, Any]]) -> str:
    """Return the settings that differ, with their values: `data.vocab_size 150, 600`."""
    values: dict[str, dict[str, Any]] = {}
    for settings in found:
        for key, value in settings.items():
            values.setdefault(key, {})[_short(as_typed(value))] = value
    several = {key: sorted(named, key=lambda name: _place(named[name])) for key, named in values.items()}
    return "; ".join(f"{key} {', '.join(names)}" for key, names in several.items() if len(names) > 1)


def _place(value: object) -> float:
    """Return a number as itself, so that numbers are in their order; anything else stays where it is."""
    return value if isinstance(value, int | float) else 0.0


def _short(value: str) -> str:
    """Return a digest cut short."""
    return value if len(value) <= SHORT else f"{value[: SHORT - 4]} ..."


SHORT = 24


def _of_text(*keys: str) -> Callable[[Recipe], Mapping[str, Any]]:
    return lambda recipe: {key: value for key, value in text_settings(recipe).items() if key in keys}


NATS = "nats per character"
"""Unit of the losses that do not depend on the vocabulary: of the raw references' characters, in any tokens."""

PER_TOKEN = Scale("is per token, and the vocabularies differ", vocabulary_settings, NATS)
LETTERS = Scale("depends on the case of letters, which differs", _of_text("data.lowercase"))
WORDS = Scale(
    "depends on how the text is read and cut into words, which differs",
    _of_text("data.lowercase", "data.bleu_tokenizer"),
)


@dataclass(frozen=True)
class Score:
    """One number per run, by which runs are compared. `digits`: after the decimal point."""

    title: str
    unit: str
    digits: int
    higher_is_better: bool
    value: Value
    scale: Scale | None = None

    def unlike(self, recipes: Iterable[Recipe]) -> str | None:
        """Return why the score cannot be compared between runs of these recipes; None if it can."""
        return None if self.scale is None else self.scale.unlike(self.title, recipes)


def _of_evaluation(read: Callable[[AnyEvaluation], float | None]) -> Value:
    return lambda record, evaluation: None if evaluation is None else read(evaluation)


def _of_selected(read: Callable[[Selected], float | None]) -> Value:
    return lambda record, evaluation: None if record.selected is None else read(record.selected)


SCORES: Mapping[str, Score] = {
    "test_bleu": Score("test BLEU", "BLEU", 2, True, _of_evaluation(lambda found: found.bleu), WORDS),
    "test_chrf": Score("test chrF", "chrF", 2, True, _of_evaluation(lambda found: found.chrf), LETTERS),
    "test_loss": Score("test loss", "nats per token", 4, False, _of_evaluation(lambda found: found.loss), PER_TOKEN),
    "test_loss_per_character": Score(
        "test loss per character", NATS, 4, False, _of_evaluation(lambda found: found.loss_per_character), LETTERS
    ),
    "valid_bleu": Score("validation BLEU", "BLEU", 2, True, _of_selected(lambda selected: selected.bleu), WORDS),
    "valid_loss": Score(
        "validation loss", "nats per token", 4, False, _of_selected(lambda selected: selected.loss), PER_TOKEN
    ),
    "valid_loss_per_character": Score(
        "validation loss per character",
        NATS,
        4,
        False,
        _of_selected(lambda selected: selected.loss_per_character),
        LETTERS,
    ),
}
"""Scores of quality, by their names in experiment files."""


def unlike(name: str, recipes: Sequence[Recipe]) -> str | None:
    """Return why the metric of this name cannot be compared between runs of these recipes; None if nothing forbids."""
    return SCORES[name].unlike(recipes) if name in SCORES else None


def alike(names: Iterable[str], recipes: Sequence[Recipe]) -> str:
    """Return which of these metrics can be compared between runs of these recipes, for a message."""
    return ", ".join(name for name in names if unlike(name, recipes) is None)


COSTS: Mapping[str, Score] = {
    "training_speed": Score(
        "training speed", "target tokens/s", 0, True, lambda record, evaluation: record.cost.tokens_per_second
    ),
    "decoding_speed": Score(
        "decoding speed", "sentences/s", 0, True, _of_evaluation(lambda found: found.sentences_per_second)
    ),
    "memory": Score(
        "peak memory of training", "MiB", 0, False, lambda record, evaluation: record.cost.peak_memory_bytes / 2**20
    ),
}
"""Speeds and memory, by their names in experiment files. They also depend on the machine and its load."""

OF_ARMS = ("failures", "depth", "pruned_bleu")
"""Metrics of claims that no single run has. `failures`: share of runs that diverge. `depth`: decoder layers left when
pruning has cost `fall` BLEU. `pruned_bleu`: test BLEU with `layers` decoder layers, of a pruned model or of a whole one
of that depth, or with `heads` heads.
"""

METRICS = (*SCORES, *COSTS, *OF_ARMS)
"""All names of metrics that are not users' own."""

OF_TRAINING = ("valid_bleu", "valid_loss", "training_speed", "memory", "failures")
"""Metrics that are known when training ends: no test set and no way to decode changes them."""

MONITORED = {"valid_loss": "loss", "valid_bleu": "bleu"}
"""Metrics by which training may select weights, and their values of training.monitor."""

BEST_OF_SEVERAL = {"best": "the best of {} validations", "best_or_averaged": "the best of {} validations or their mean"}
"""Methods of selection that compare the very scores that they select, in words: the best of several is no estimate for
new data.
"""


def chosen_by(metric: str | None, recipe: Mapping[str, Any]) -> str | None:
    """Return the method of selection if this metric chose the weights whose score it is; None if it did not.

    recipe: flat, with dotted names. `averaged` is no such method: the score says only where the averaged weights end,
    and their mean is validated afterwards. Nor is a metric that is not monitored, or a setting tuned on other seeds.
    """
    method = recipe.get("training.select")
    is_monitored = metric in MONITORED and recipe.get("training.monitor") == MONITORED[metric]
    return method if is_monitored and method in BEST_OF_SEVERAL else None
