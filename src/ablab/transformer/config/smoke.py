"""Smoke runs: every stage of a run on a small part of the data, in seconds. Their scores mean nothing."""

from collections.abc import Mapping
from typing import Any

SMOKE_STEPS = 8

SMALL: dict[str, dict[str, Any]] = {
    "data": {
        "train_pairs": 400,
        "valid_pairs": 16,
        "test_pairs": 16,
        "vocab_size": 300,
        # A text of many characters needs more pieces, a small one gives fewer.
        "hard_vocab_limit": False,
        # For the built-in corpus, which would otherwise be generated whole.
        "train_size": 400,
        "valid_size": 16,
        "test_size": 16,
    },
    "optim": {"batch_tokens": 512},
    "training": {
        "max_steps": SMOKE_STEPS,
        "valid_every": SMOKE_STEPS // 2,
        "average_every": SMOKE_STEPS // 2,
        "average_last": 2,
    },
}


def _at_most(given: Any, limit: int) -> Any:
    """Return the smaller one. What is no number stays as it is: validation refuses it."""
    return min(given, limit) if isinstance(given, int | float) else given


def shrink(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with few pairs and few steps; values that are already smaller stay."""
    small = dict(values)
    for group, limits in SMALL.items():
        small[group] = {**values[group]}
        for key, limit in limits.items():
            if key not in values[group]:
                continue
            given = values[group][key]
            small[group][key] = limit if given is None else _at_most(given, limit)
    warmup = _at_most(values["schedule"].get("warmup_steps", SMOKE_STEPS), SMOKE_STEPS // 2)
    small["optim"] |= {"lr": values["optim"]["lr"] or 1e-3}
    for group, limits in (
        ("schedule", {"warmup_steps": warmup}),
        ("drophead", {"warmup_steps": warmup, "total_steps": SMOKE_STEPS}),
    ):
        small[group] = {**values[group], **{key: limit for key, limit in limits.items() if key in values[group]}}
    return small
