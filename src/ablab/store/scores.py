"""Scores of a trained run: title, unit and direction of each, and where it stands in the run's files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ablab.store.outlines import AnyEvaluation, AnyRecord
from ablab.store.records import Selected

Value = Callable[[AnyRecord, AnyEvaluation | None], float | None]
"""Reads a score from a run's record and evaluation; None where they do not hold it."""


@dataclass(frozen=True)
class Score:
    """One number per run, by which runs are compared. `digits`: after the decimal point."""

    title: str
    unit: str
    digits: int
    higher_is_better: bool
    value: Value


def _of_evaluation(read: Callable[[AnyEvaluation], float | None]) -> Value:
    return lambda record, evaluation: None if evaluation is None else read(evaluation)


def _of_selected(read: Callable[[Selected], float]) -> Value:
    return lambda record, evaluation: None if record.selected is None else read(record.selected)


SCORES: Mapping[str, Score] = {
    "test_bleu": Score("test BLEU", "BLEU", 2, True, _of_evaluation(lambda found: found.bleu)),
    "test_chrf": Score("test chrF", "chrF", 2, True, _of_evaluation(lambda found: found.chrf)),
    "test_loss": Score("test loss", "nats per token", 4, False, _of_evaluation(lambda found: found.loss)),
    "valid_bleu": Score("validation BLEU", "BLEU", 2, True, _of_selected(lambda selected: selected.bleu)),
    "valid_loss": Score("validation loss", "nats per token", 4, False, _of_selected(lambda selected: selected.loss)),
}
"""Scores of quality, by their names in experiment files."""

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
