"""Composition of the words of a command line into a valid configuration, or into a one-line error."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ablab.config.keys import all_fields, askers, readers
from ablab.config.kinds import handed, unasked, unmet_needs, with_options
from ablab.config.schema import Config, having, own_values, schema_of
from ablab.errors import UserError, first_error
from ablab.fields import Group, as_typed, flatten, unsigned

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


@dataclass(frozen=True)
class Composed:
    """A valid configuration, with the chosen option of each group and the fields changed beside them.

    `unread`: for each typed word without effect, the reason; the configuration is the same without it. `asked`: the
    corpus as it was asked for, if a smoke run uses a small part of it. `has_seed`: a value refers to that of the
    seed, as `${seed}` does.
    """

    config: Config
    choices: dict[str, str]
    changes: dict[str, Any]
    unread: dict[str, str] = field(default_factory=dict)
    asked: Any = None
    has_seed: bool = False

    def reseeded(self, seed: int) -> "Composed":
        """Return the same configuration with another seed. Not for one with a value that refers to the seed."""
        config = self.config.model_copy(update={"seed": seed})
        return replace(self, config=config, changes=self.changes | {"seed": seed})


def compose(arguments: Sequence[str]) -> Composed:
    """Compose and validate `key=value` words. UserError names the key, the value and what is allowed.

    A word without effect is refused.
    """
    composed = compose_arm(arguments)
    for why in composed.unread.values():
        raise UserError(why)
    return composed


def compose_arm(arguments: Sequence[str]) -> Composed:
    """Compose one arm of several: a word without effect is reported in `unread`, as other arms may read it."""
    from ablab.config.overrides import check, parse
    from ablab.config.values import values_of

    overrides = parse(arguments)
    check(overrides, all_fields())
    typed = values_of(overrides)
    meant = unsigned(typed.resolved)
    base, written, resolved = (flatten(values) for values in (typed.base, typed.written, meant))
    # A field may have become a mapping, by an interpolation; validation refuses it.
    changes = {key: resolved.get(key) for key, value in written.items() if base.get(key) != value}
    config = validate(_schema(meant).shrink(meant) if meant["smoke"] else meant)
    chosen = {group: option for group, option in typed.choices.items() if _is_of(config, group)}
    unread = dict(_without_effect(overrides, typed.unread, chosen, config))
    idle = {override.key_or_group for override in overrides if override.input_line in unread}
    changes = {key: value for key, value in changes.items() if key not in idle}
    asked = with_options(type(config), meant).get("data") if config.smoke and _is_of(config, "data") else None
    has_seed = any(re.search(r"\$\{[^}]*seed", str(value)) for value in written.values())
    return Composed(config, chosen, changes, unread, asked, has_seed)


def validate(values: Mapping[str, Any]) -> Config:
    """Return a plain nested mapping as the typed configuration; UserError for an invalid value or combination."""
    schema = _schema(values)
    filled = with_options(schema, own_values(schema, values))
    try:
        config = schema.model_validate(filled)
    except ValidationError as error:
        raise UserError(first_error(error, filled)) from None
    for violation in chain(config.violations(), unmet_needs(config)):
        raise UserError(violation)
    return config


def _schema(values: Mapping[str, Any]) -> type[Config]:
    """Return the schema of the task that these values choose."""
    task = values.get("task")
    return schema_of(task.get("kind")) if isinstance(task, Mapping) else schema_of()


def _is_of(config: Config, key: str) -> bool:
    """Return whether the task of a configuration has the group or field of a key."""
    return key.partition(".")[0] in type(config).model_fields


def _without_effect(
    overrides: Sequence["Override"], unread: Collection[str], chosen: Mapping[str, str], config: Config
) -> Iterator[tuple[str, str]]:
    """Yield each word that changes nothing, with an error message."""
    typed = {override.key_or_group for override in overrides}
    for override in overrides:
        key, line = override.key_or_group, str(override.input_line)
        group = key.partition(".")[0]
        if not _is_of(config, group):
            yield line, f"{line} has no effect with task={chosen['task']}; allowed with task={', '.join(having(group))}"
        elif key in unread:
            options = ", ".join(readers(key))
            yield line, f"{line} has no effect with {group}={chosen[group]}; allowed with {group}={options}"
        elif (why := idle(config, key) or _unasked(config, chosen, key)) is not None:
            yield line, f"{line} has no effect with {why}"
        elif key == "layerdrop" and {"layerdrop_encoder", "layerdrop_decoder"} <= typed:
            yield (
                line,
                f"{line} has no effect beside layerdrop_encoder and layerdrop_decoder; allowed: one or the others",
            )


def _unasked(config: Config, chosen: Mapping[str, str], key: str) -> str | None:
    """Return the option whose part does not ask for the field, and those whose parts do; None for any other field."""
    if key not in unasked(config):
        return None
    group = handed()[key]
    return f"{group}={chosen[group]}; allowed with {group}={', '.join(askers(key))}"


def idle(config: Group, key: str) -> str | None:
    """Return the values under which the field has no effect and those that would give it one; None if it has one."""
    parent = config
    path: tuple[str, ...] = ()
    for part in key.split("."):
        condition = type(parent).marks()[part].read_if
        if condition is not None and not condition.holds(parent):
            there = ((".".join((*path, other)), getattr(parent, other)) for other in condition.others)
            return (
                f"{' and '.join(f'{name}={as_typed(value)}' for name, value in there)}; allowed with {condition.needs}"
            )
        path = (*path, part)
        child = getattr(parent, part)
        if not isinstance(child, Group):  # a value; what may follow is a key of a mapping
            break
        parent = child
    return None
