"""The schemas of tasks, and the settings that runs of every task have: each field with its type, range and role.

Options with fields of their own are in options.py. There are no defaults here; the YAML files under conf/ hold them,
each in one place.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator

from ablab.config.options import PARTS, Logger, PartGroup, TaskOption
from ablab.fields import RUNTIME, Count, Formerly, Group, Positive, Role, is_group

DEFAULT = "translation"
"""The kind of the task of runs that name none."""

OF_A_SWEEP = ("rerun", "retry_failed", "fail_fast")
"""Fields that control a sweep; its runs must not receive them."""


def _yes_no_or_stale(value: object) -> object:
    if value is True or value is False or value == "stale":
        return value
    raise ValueError("allowed: true, false, stale")


class Trainer(Group):
    """Hardware and execution of a run, which computes the same numbers under any of them.

    `threads`: of the whole run. `compile`: the layers. `checkpoint_every`: minutes.
    """

    role: ClassVar[Role] = RUNTIME
    accelerator: Literal["cpu", "gpu"]
    devices: Count
    threads: Count | None
    micro_batches: Count
    checkpoint_every: Positive | None
    compile: bool
    progress: bool


class Config(Group):
    """What decides a run, its evaluation, and where it is computed. The schema of a task with more derives from it.

    `parts`: the groups whose options name parts. `grouped`: fields by which trackers group runs, as they do by the
    options that were chosen. `words`: former keys with an unchanged meaning: a field, or a group whose options have the
    same names. `gone`: those that no single key replaces, with what to type instead. `unread`: why the task lacks a
    field that another has. `meant`: by group, names that options have elsewhere; similarity of spelling would suggest
    another experiment.
    """

    parts: ClassVar[Mapping[str, PartGroup]] = PARTS
    grouped: ClassVar[tuple[str, ...]] = ("seed",)
    words: ClassVar[Mapping[str, str]] = {}
    gone: ClassVar[Mapping[str, str]] = {}
    unread: ClassVar[Mapping[str, str]] = {}
    meant: ClassVar[Mapping[tuple[str, str], str]] = {}

    task: Annotated[TaskOption, Formerly({"kind": DEFAULT})]
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    trainer: Trainer
    logger: Logger
    outputs: Annotated[str, Field(min_length=1), RUNTIME]
    smoke: Annotated[bool, RUNTIME]
    experiment: Annotated[str | None, RUNTIME]
    mixed: Annotated[bool, RUNTIME]
    wait: Annotated[bool, RUNTIME]
    rerun: Annotated[bool | Literal["stale"], PlainValidator(_yes_no_or_stale), RUNTIME]
    retry_failed: Annotated[bool, RUNTIME]
    fail_fast: Annotated[bool, RUNTIME]
    search_trial: Annotated[str | None, RUNTIME]

    def violations(self) -> Iterator[str]:
        """Yield every rule on combinations of fields that is broken, as `key=value: requirement`."""
        parts, devices = self.trainer.micro_batches, self.trainer.devices
        if parts % devices:
            yield (
                f"trainer.micro_batches={parts}: a step's parts are divided among trainer.devices={devices}; "
                f"allowed: {devices}, {2 * devices}, {3 * devices}, ..."
            )

    @classmethod
    def shrink(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a smoke run, which takes every stage of a run in seconds and in a store of its own."""
        return {**values, "outputs": f"{values['outputs']}/smoke"}

    @classmethod
    def of_schema_1(cls, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration recorded under SCHEMA 1, or a part of one, in current fields."""
        return dict(recorded)


SCHEMAS: Mapping[str, str] = {
    DEFAULT: "ablab.transformer.config.schema.TranslationConfig",
    "language_model": "ablab.transformer.language_model.schema.LanguageModelConfig",
}
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
    return _own(schema, schemas(), values)


def _own(group: type[Group], all_of: Sequence[type[Group]], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a group, which other tasks have as others of `all_of`, without what only those have."""
    of_others = _of_others(group, tuple(all_of))
    return {
        name: _own(inner, _inner(all_of, name), value)
        if isinstance(value, Mapping) and (inner := _group(group, name)) is not None and name not in part_groups()
        else value
        for name, value in values.items()
        if name not in of_others
    }


@cache
def _of_others(group: type[Group], all_of: Sequence[type[Group]]) -> frozenset[str]:
    return frozenset(name for other in all_of for name in other.model_fields) - group.model_fields.keys()


@cache
def _group(outer: type[Group], name: str) -> type[Group] | None:
    """Return the group that is a field of another, if it is one."""
    annotation = outer.model_fields[name].annotation if name in outer.model_fields else None
    return annotation if is_group(annotation) else None


def _inner(outer: Sequence[type[Group]], name: str) -> list[type[Group]]:
    return [found for each in outer if (found := _group(each, name)) is not None]


@cache
def has(schema: type[Config], key: str) -> bool:
    """Return whether the settings of a task have the group or field of a dotted key, as far as options do not vary."""
    group: type[Group] | None = schema
    first, *others = key.split(".")
    if first not in schema.model_fields:
        return False
    for name in [first] if first in part_groups() else [first, *others]:
        if group is None:
            return True
        if name not in group.model_fields:
            return False
        group = _group(group, name)
    return True


def having(key: str) -> list[str]:
    """Return the kinds of tasks whose settings have a group or field."""
    return [kind for kind in SCHEMAS if has(schema_of(kind), key)]
