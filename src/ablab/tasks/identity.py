"""Identity of runs, evaluations and curves: each id is a hash of exactly the settings that decide the result."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ablab.config import Composed, Config
from ablab.config.groups import TARGET, implied_choices
from ablab.config.keys import field_of, fields_beside
from ablab.fields import Role, as_typed
from ablab.files import json_digest
from ablab.tasks.registry import task_of_option


def recipe(config: Config, origin: str | None = None) -> dict[str, Any]:
    """Return everything that decides the selected weights, as plain values; settings without effect are left out.

    `origin`: digest of the weights that training starts from; None for random ones.
    """
    return task_of_option(config.task).recipe(config, origin)


def differing(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in which one flat recipe differs from another, the seed apart, with the values of `ours`.

    Recipes are compared, not words: a word may have no effect, or more than one. What `ours` lacks since its option has
    no such field is left out.
    """
    keys = [key for key in {**theirs, **ours} if key != "seed" and _are_other(theirs.get(key), ours.get(key))]
    named = ("kind", TARGET)
    changed = {key.partition(".")[0] for key in keys if key.partition(".")[2] in named}
    return {key: ours.get(key) for key in keys if key in ours or key.partition(".")[0] not in changed}


def _are_other(one: object, other: object) -> bool:
    """Return whether two values are not the same: 1, 1.0 and true are three, which a program may read in three ways."""
    return type(one) is not type(other) or one != other


def evaluation(config: Config) -> dict[str, Any]:
    """Return the settings of an evaluation: all that decides its scores, besides the recipe."""
    return task_of_option(config.task).evaluation(config)


def curve(config: Config) -> dict[str, Any]:
    """Return the settings of a run's further curves; empty for a task that has none."""
    return task_of_option(config.task).curve(config)


def run_id(content: dict[str, Any]) -> str:
    """Return `r` and 11 hex digits of the SHA-256 of a recipe."""
    return "r" + json_digest(content, 11)


def condition_id(content: dict[str, Any]) -> str:
    """Return `c` and 11 hex digits of the SHA-256 of a recipe without its seed."""
    return "c" + json_digest({key: value for key, value in content.items() if key != "seed"}, 11)


def evaluation_id(settings: dict[str, Any]) -> str:
    """Return `e` and 11 hex digits of the settings' SHA-256."""
    return "e" + json_digest(settings, 11)


def curve_id(settings: dict[str, Any]) -> str:
    """Return `p` and 11 hex digits of the settings' SHA-256."""
    return "p" + json_digest(settings, 11)


def display_name(composed: Composed, defaults: dict[str, str]) -> str:
    """Return the differences from a plain `python train.py` and the seed: `norm=scalenorm,layerdrop=0.2,s1`."""
    fields = fields_beside(composed.config)
    implied: dict[str, str] = {}
    for group, option in composed.choices.items():
        if option != defaults.get(group):
            implied |= implied_choices(group, option)
    parts = [
        f"{group}={option}"
        for group, option in composed.choices.items()
        if option != (defaults | implied).get(group) and group not in ("trainer", "logger", "decoding", "pruning")
    ]
    task = task_of_option(composed.config.task)
    parts += [
        f"{called}={as_typed(value)}"
        for key, value in composed.changes.items()
        if key != "seed" and fields[field_of(key, fields)] is Role.RECIPE and (called := task.called(key)) is not None
    ]
    return ",".join([*parts, of_seed(composed.config.seed)])


def of_seed(seed: int) -> str:
    """Return the last part of a display name."""
    return f"s{seed}"


def parts_of(name: str) -> list[str]:
    """Return the words of a display name, each list whole."""
    return re.findall(r"(?:\[[^\]]*\]|[^,\[])+", name)


def distinct(names: Sequence[str]) -> list[str]:
    """Return display names without the parts that all of them share."""
    parts = [parts_of(name) for name in names]
    common = set.intersection(*(set(mine) for mine in parts)) if len(parts) > 1 else set()
    return [",".join(part for part in mine if part not in common) or "the defaults" for mine in parts]
