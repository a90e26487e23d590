"""Composition of the words of a command line into a valid configuration, or into a one-line error.

A finished run has its configuration with other evaluation or runtime settings; its recipe cannot be changed.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ablab.config.groups import groups, option_values
from ablab.config.keys import all_fields, askers, readers, text_of
from ablab.config.kinds import class_of, class_recorded, defaults_of, handed, unasked, unmet_needs, with_options
from ablab.config.options import Logger
from ablab.config.plain_yaml import read_yaml, take_for_text
from ablab.config.schema import DEFAULT, OF_A_SWEEP, Config, has, having, own_values, part_groups, schema_of
from ablab.errors import UserError, check_text, choices, first_error
from ablab.fields import Group, Role, as_typed, unsigned

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
    config = validate(_schema(meant).shrink(meant) if meant["smoke"] else meant)
    chosen = {group: option for group, option in typed.choices.items() if _is_of(config, group)}
    unread = dict(_without_effect(overrides, typed.unread, chosen, config))
    idle = {override.key_or_group for override in overrides if override.input_line in unread}
    changes = {key: unsigned(value) for key, value in typed.changes.items() if key not in idle}
    asked = with_options(type(config), meant).get("data") if config.smoke and _is_of(config, "data") else None
    return Composed(config, chosen, changes, unread, asked, typed.has_seed)


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
    return has(type(config), key)


def _without_effect(
    overrides: Sequence["Override"], unread: Collection[str], chosen: Mapping[str, str], config: Config
) -> Iterator[tuple[str, str]]:
    """Yield each word that changes nothing, with an error message."""
    typed = {override.key_or_group for override in overrides}
    for override in overrides:
        key, line = override.key_or_group, str(override.input_line)
        group = key.partition(".")[0]
        if not _is_of(config, key):
            reason = f", {type(config).unread[key]}" if key in type(config).unread else ""
            allowed = ", ".join(having(key))
            yield line, f"{line} has no effect with task={chosen['task']}{reason}; allowed with task={allowed}"
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


OPEN_GROUPS = ("pruning", "decoding", "trainer", "logger")


def reopen(recorded: Mapping[str, Any], words: Sequence[str]) -> Config:
    """Return a recorded configuration with the changes in `words`.

    `recorded`: a record's `config`. `words`: `group=option` and `group.field=value`, values as in YAML.
    """
    values = _with_news(recorded)
    typed = [_split(word) for word in words]
    chosen: dict[str, str] = {}
    for key, value in typed:
        if key in OPEN_GROUPS:
            if value not in groups()[key]:
                raise UserError(f"{key}={value}: unknown option; {choices(value, groups()[key])}")
            values[key], chosen[key] = _option(key, value), value
    fields = open_fields(values)
    for key, value in typed:
        if key in OPEN_GROUPS:
            continue
        if key not in fields:
            raise UserError(f"{key}={value}: no such key here; {choices(key, [*OPEN_GROUPS, *fields])}")
        group, _, field = key.rpartition(".")
        if group in part_groups() and not _reads(group, values[group]["kind"], field):
            option = chosen.get(group, values[group]["kind"])
            having = ", ".join(readers(key))
            raise UserError(f"{key}={value} has no effect with {group}={option}; allowed with {group}={having}")
        (values[group] if group else values)[field] = _parsed(key, value)
    config = validate({**values, **_resolved(values, chosen)})
    for key, value in typed:
        if key not in OPEN_GROUPS and (why := idle(config, key)) is not None:
            raise UserError(f"{key}={value} has no effect with {why}")
    return config


def _option(group: str, option: str) -> dict[str, Any]:
    """Return the values of an option, with those that only the signature of its part has."""
    values = option_values(group, option)
    return {**(defaults_of(group, values["kind"]) if group in part_groups() else {}), **values}


def _resolved(values: Mapping[str, Any], chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that were chosen, with the values that theirs refer to, such as `${trainer.devices}`."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    config = OmegaConf.create(dict(values))
    try:
        return {group: OmegaConf.to_container(config[group], resolve=True) for group in chosen}
    except OmegaConfBaseException as error:
        typed = " ".join(f"{group}={option}" for group, option in chosen.items())
        raise UserError(f"{typed}: {' '.join(str(error).split())}") from None


def _reads(group: str, kind: str, field: str) -> bool:
    """Return whether options of this kind have the field; a record may lack one that was added to them later."""
    found = class_of(group, kind)
    return found is not None and field in found.model_fields


def _with_news(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which fields added by later versions take their defaults, where these do not affect weights.

    This applies only within the option that was chosen: fields that only another kind reads are not added.
    """
    values = deepcopy(dict(recorded))
    task = values.get("task", {}).get("kind", DEFAULT)
    schema = schema_of(task)
    values, usual = own_values(schema, values), own_values(schema, compose([]).config.model_dump(serialize_as_any=True))
    fields = _fields(values)
    for group, content in usual.items():
        if not isinstance(content, dict):
            if schema.marks()[group].role is not Role.RECIPE:
                values.setdefault(group, content)
        elif group not in values or values[group].get("kind") == content.get("kind"):
            for name in content:
                if fields.get(f"{group}.{name}") is not Role.RECIPE:
                    values.setdefault(group, {}).setdefault(name, content[name])
    values["logger"] = _own_logger(values["logger"], usual["logger"])
    return values


def _own_logger(recorded: Mapping[str, Any], usual: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the recorded logger as the user's own configuration has it, or the usual one where no option here has it.

    A folder that came from others must not decide where to, or with one's own key, something is sent.
    """
    kind = recorded["kind"]
    own = usual if kind == usual["kind"] else _option_of("logger", kind)
    if own is None:
        return usual
    found = class_of("logger", kind)
    assert found is not None
    assert issubclass(found, Logger)
    kept = {name: recorded[name] for name in found.portable if name in recorded}
    return {**{name: value for name, value in own.items() if name != "code"}, **kept}


def _option_of(group: str, kind: str) -> dict[str, Any] | None:
    """Return the values of the first option here of this kind, or None."""
    names = (name for name in groups()[group] if option_values(group, name).get("kind") == kind)
    return next((_option(group, name) for name in names), None)


def open_fields(recorded: Mapping[str, Any]) -> list[str]:
    """Return the fields that do not decide a run's weights; of `data`, those of the recorded corpus."""
    return [
        name
        for name, role in _fields(recorded).items()
        if role is not Role.RECIPE and name not in ("smoke", "experiment", "search_trial", *OF_A_SWEEP)
    ]


def _fields(recorded: Mapping[str, Any]) -> Mapping[str, Role]:
    return all_fields(class_recorded("data", recorded["data"]) if "data" in recorded else None)


def _parsed(key: str, value: str) -> Any:
    from yaml import YAMLError

    try:
        return unsigned(read_yaml(value, (lambda node: None) if text_of(key) is None else take_for_text))
    except (ValueError, YAMLError):
        raise UserError(f"{key}={value}: cannot be read as a value; allowed: as in YAML, such as [3,2,1]") from None


def _split(word: str) -> tuple[str, str]:
    check_text(word)
    key, equals, value = word.partition("=")
    if not equals:
        raise UserError(f"{word!r}: not an override; allowed: key=value")
    return key, value
