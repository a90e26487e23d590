"""Validation scores that chose the weights they score: the best of several is no estimate for new data."""

from collections.abc import Mapping
from typing import Any

MONITORED = {"valid_loss": "loss", "valid_bleu": "bleu"}
"""Metrics by which training may select weights, and their values of training.monitor."""

BEST_OF_SEVERAL = {"best": "the best of {} validations", "best_or_averaged": "the best of {} validations or their mean"}
"""Methods of selection that compare the very scores that they select, in words."""


def chosen_by(metric: str | None, recipe: Mapping[str, Any]) -> str | None:
    """Return the method of selection if this metric chose the weights whose score it is; None if it did not.

    recipe: flat, with dotted names. `averaged` is no such method: the score says only where the averaged weights end,
    and their mean is validated afterwards. Nor is a metric that is not monitored, or a setting tuned on other seeds.
    """
    method = recipe.get("training.select")
    is_monitored = metric in MONITORED and recipe.get("training.monitor") == MONITORED[metric]
    return method if is_monitored and method in BEST_OF_SEVERAL else None
