"""The configuration of a finished run with other evaluation or runtime settings; its recipe cannot be changed."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from ablab.config.compose import compose, idle, validate
from ablab.config.groups import groups, option_values
from ablab.config.keys import all_fields, readers, text_of
from ablab.config.kinds import class_of, class_recorded, defaults_of
from ablab.config.options import Logger
from ablab.config.plain_yaml import read_yaml, take_for_text
from ablab.config.schema import DEFAULT, OF_A_SWEEP, Config, own_values, part_groups, schema_of
from ablab.errors import UserError, check_text, choices
from ablab.fields import Role, unsigned

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
