"""Former names: keys that users may still type, and configurations recorded under SCHEMA 1."""

from collections.abc import Mapping
from typing import Any

from ablab.config.kinds import class_of

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
"""Former keys with an unchanged meaning: a field, or a group whose options have the same names."""

GONE = {
    "norm.fixnorm": "embedding=fixnorm, or embedding=scaled for none",
    "norm.kind": "norm=OPTION, and placement=post for PostNorm",
}
"""Former keys that no single key replaces, with what to type instead."""

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
"""Names that options have elsewhere. Similarity of spelling would suggest a different experiment."""


def of_schema_1(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration recorded under SCHEMA 1, or a part of one, in current fields with its former effect."""
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
        schedule["decay_patience"] += 1  # SCHEMA 1 decayed one validation late
        values |= {"schedule": {"kind": optim.pop("schedule"), **schedule}, "optim": {"kind": "adam", **optim}}
    for group, discriminator in (("drophead", "schedule"), ("pruning", "strategy")):
        if group in values:
            values[group] = {"kind" if key == discriminator else key: value for key, value in values[group].items()}
    return {group: _read_alone(group, value) for group, value in values.items()}


def _read_alone(group: str, values: Any) -> Any:
    """Remove the fields that an option's kind does not read: in SCHEMA 1 every option had the fields of all."""
    if not isinstance(values, Mapping) or "kind" not in values or group == "data":
        return values
    found = class_of(group, values["kind"])
    return values if found is None else {key: values[key] for key in values if key in found.model_fields}
