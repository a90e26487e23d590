"""What was called otherwise once: words that people still type, and configurations on record from SCHEMA 1."""

from collections.abc import Mapping
from typing import Any

from ablab.config.options import class_of

WORDS = {
    "optim.schedule": "schedule",
    "optim.warmup_steps": "schedule.warmup_steps",
    "optim.decay": "schedule.decay",
    "optim.decay_patience": "schedule.decay_patience",
    "optim.min_lr": "schedule.min_lr",
    "norm.placement": "placement",
    "drophead.schedule": "drophead",
    "pruning.strategy": "pruning",
}
"""Former keys that still mean what they meant: a field, or a group whose options bear the same names."""

GONE = {
    "norm.fixnorm": "embedding=fixnorm, or embedding=scaled for none",
    "norm.kind": "norm=OPTION, and placement=post for PostNorm",
}
"""Former keys that no single key replaces, and what is typed instead."""

MEANT = {
    ("norm", "prenorm"): "pre",
    ("norm", "preln"): "pre",
    ("norm", "pre_norm"): "pre",
    ("norm", "layernorm"): "pre",
    ("norm", "ln"): "pre",
    ("norm", "postnorm"): "post",
    ("norm", "postln"): "post",
    ("norm", "post_norm"): "post",
    ("norm", "rms"): "rmsnorm",
    ("placement", "prenorm"): "pre",
    ("placement", "postnorm"): "post",
}
"""What people call options elsewhere. Likeness of letters would send them to another experiment."""


def key_of_now(key: str) -> str:
    """The key that a former one stands for."""
    return WORDS.get(key, key)


def key_of(word: str) -> str:
    """The key of `key=value`, as it is called today."""
    return key_of_now(word.partition("=")[0])


def of_schema_1(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration on record from SCHEMA 1, or a part of one, in today's fields, with the effect that it had."""
    values = dict(config)
    if "norm" in values:
        norm = values["norm"]
        values |= {
            "norm": {"kind": norm["kind"], "learn_g": norm["learn_g"]},
            "placement": {"kind": norm["placement"]},
            "embedding": {"kind": "fixnorm" if norm["fixnorm"] else "scaled"},
            "attention_norm": {"kind": "none"},
        }
    if "optim" in values:
        optim = dict(values["optim"])
        schedule = {key: optim.pop(key) for key in ("warmup_steps", "decay", "decay_patience", "min_lr")}
        schedule["decay_patience"] += 1  # it decayed one validation later than it said
        values |= {"schedule": {"kind": optim.pop("schedule"), **schedule}, "optim": {"kind": "adam", **optim}}
    for group, discriminator in (("drophead", "schedule"), ("pruning", "strategy")):
        if group in values:
            values[group] = {"kind" if key == discriminator else key: value for key, value in values[group].items()}
    return {group: _read_alone(group, value) for group, value in values.items()}


def _read_alone(group: str, values: Any) -> Any:
    """An option without the fields that its kind does not read: in SCHEMA 1 every option carried those of all."""
    if not isinstance(values, Mapping) or "kind" not in values or group == "data":
        return values
    found = class_of(group, values["kind"])
    return values if found is None else {key: values[key] for key in values if key in found.model_fields}
