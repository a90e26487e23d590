"""The schemas of tasks. A kind of task that has no schema of its own has the settings of every task."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from ablab.config.options import PartGroup
from ablab.config.schema import DEFAULT, Config

SCHEMAS: Mapping[str, str] = {DEFAULT: "ablab.transformer.config.schema.TranslationConfig"}
"""By kind of task, the class that its settings have, which is imported when it is first asked for."""


@cache
def schema_of(kind: object = DEFAULT) -> type[Config]:
    """Return the schema of a kind of task."""
    if kind not in SCHEMAS:
        return Config
    module, _, name = SCHEMAS[str(kind)].rpartition(".")
    found: type[Config] = getattr(import_module(module), name)
    return found


@cache
def schemas() -> list[type[Config]]:
    """Return every schema, that of the default task first."""
    return [*map(schema_of, SCHEMAS), Config]


@cache
def part_groups() -> Mapping[str, PartGroup]:
    """Return the groups of parts of all tasks."""
    return {group: parts for schema in reversed(schemas()) for group, parts in schema.parts.items()}


def own_values(schema: type[Config], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values without the fields that only other tasks have. What no task has stays: validation refuses it."""
    others = {name for other in schemas() for name in other.model_fields} - schema.model_fields.keys()
    return {name: value for name, value in values.items() if name not in others}


def having(field: str) -> list[str]:
    """Return the kinds of tasks whose settings have a group or field."""
    return [kind for kind in SCHEMAS if field in schema_of(kind).model_fields]
