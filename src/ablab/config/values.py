"""Hydra's values for typed overrides: options are composed once for all runs that share them, fields set on a copy.

OmegaConf takes milliseconds for each arm of a study. Nearly every word sets a field to a number, a word or null, and
nearly every interpolation is the value of one other field; what is not so simple is left to OmegaConf.
"""

import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from hydra import __version__ as hydra_version
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from ablab.code.folders import PRIMARY, cached_by_folders, shipped_conf
from ablab.config.grammar import quoted
from ablab.config.groups import TARGET, groups, is_shipped, option_files, option_values, shipped_options, with_kind
from ablab.config.keys import all_fields, mappings_of_options
from ablab.config.kinds import class_of, defaults_of
from ablab.config.schema import part_groups, schema_of
from ablab.errors import UserError, choices
from ablab.fields import flatten

REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\}")
"""An interpolation that is the value of one other field, by its whole name."""

MISSING = "???"
"""How OmegaConf writes a value that is still missing."""

SCALARS = (int, float, bool, str, type(None))


class Values(NamedTuple):
    """What is typed, as nested plain values without interpolations.

    `changes`: the fields that are written otherwise than the chosen options have them, by their dotted names.
    `has_seed`: a value refers to that of the seed, as `${seed}` does. `unread`: by key, the overrides of fields that
    the chosen option does not read; the values leave them out.
    """

    resolved: dict[str, Any]
    changes: dict[str, Any]
    has_seed: bool
    choices: dict[str, str]
    unread: dict[str, Override]


def values_of(overrides: Sequence[Override]) -> Values:
    """Compose the YAML files and these overrides with Hydra into plain values."""
    base, read, unread = _composed(overrides)
    quick = None if base.quick is None else base.quick.with_fields(read)
    if quick is not None:
        return Values(*quick, dict(base.choices), unread)
    config = _apply(base, read)
    values = _resolved(config, overrides)
    usual, typed, resolved = flatten(base.plain), flatten(_plain(config)), flatten(values)
    # A field may have become a mapping, by an interpolation; validation refuses it.
    changes = {key: resolved.get(key) for key, value in typed.items() if usual.get(key) != value}
    has_seed = any(re.search(r"\$\{[^}]*seed", str(value)) for value in typed.values())
    return Values(values, changes, has_seed, dict(base.choices), unread)


def written(overrides: Sequence[Override]) -> dict[str, Any]:
    """Return the same nested plain values with their interpolations as they are written."""
    base, read, _ = _composed(overrides)
    return _plain(_apply(base, read))


def _composed(overrides: Sequence[Override]) -> tuple["_Base", list[Override], dict[str, Override]]:
    """Return what the chosen options give, and the overrides of fields that these read, and that they do not read."""
    known = groups()
    chosen = {one.key_or_group: str(one.value()) for one in overrides if one.key_or_group in known}
    base = _compose_options(tuple(sorted(chosen.items())))
    fields = [one for one in overrides if one.key_or_group not in known]
    unread = {one.key_or_group: one for one in fields if not base.reads(one.key_or_group)}
    return base, [one for one in fields if one.key_or_group not in unread], unread


class Plain(NamedTuple):
    """Values of options alone. `flat`: by dotted names; `references`: the field whose value another takes."""

    nested: Mapping[str, Any]
    flat: Mapping[str, Any]
    references: Mapping[str, str]

    @classmethod
    def of(cls, nested: Mapping[str, Any]) -> "Plain | None":
        """Return the values, unless they hold what only OmegaConf resolves."""
        flat = flatten(nested)
        if any(not isinstance(key, str) or "." in key for key in _keys(nested)):
            return None
        references = {}
        for key, value in flat.items():
            if _is_simple(value):
                continue
            found = REFERENCE.fullmatch(value) if isinstance(value, str) else None
            if found is None or found[1] not in flat:
                return None
            references[key] = found[1]
        return cls(nested, flat, references)

    def with_fields(self, overrides: Sequence[Override]) -> tuple[dict[str, Any], dict[str, Any], bool] | None:
        """Return the first three of `Values` with these fields set; None where only OmegaConf can."""
        fields: dict[str, Any] = {}
        for override in overrides:
            key, value = override.key_or_group, override.value()
            is_field = key in self.flat and type(self.flat[key]) is not list
            if not is_field or type(value) not in SCALARS or not _is_simple(value):
                return None
            fields[key] = value
        references = {key: target for key, target in self.references.items() if key not in fields}
        resolved = dict(fields)
        for key, target in references.items():
            seen = {key}
            while target in references:
                if target in seen:
                    return None
                seen.add(target)
                target = references[target]
            resolved[key] = fields[target] if target in fields else self.flat[target]
        changes = {key: fields[key] for key, usual in self.flat.items() if key in fields and fields[key] != usual}
        has_seed = any("seed" in target for target in references.values())
        return _nested(self.nested, resolved), changes, has_seed


def _is_simple(value: object) -> bool:
    """Return whether a value is as it is written. Lists are, where all that they hold is."""
    if isinstance(value, str):
        return "${" not in value and value != MISSING
    if isinstance(value, list):
        return all(type(each) in (*SCALARS, list) and _is_simple(each) for each in value)
    return type(value) in SCALARS


def _keys(nested: Mapping[str, Any]) -> Iterator[object]:
    for key, value in nested.items():
        yield key
        if isinstance(value, Mapping):
            yield from _keys(value)


def _nested(values: Mapping[str, Any], fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a copy with fields set by their dotted names."""
    copy: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            copy[key] = _nested(value, fields, f"{prefix}{key}.")
        else:
            found = fields.get(f"{prefix}{key}", value)
            copy[key] = _copied(found) if isinstance(found, list) else found
    return copy


def _copied(values: list[Any]) -> list[Any]:
    return [_copied(value) if isinstance(value, list) else value for value in values]


class _Base(NamedTuple):
    """Hydra's result for options alone, and the option of each group.

    `pickled` is the source of copies: unpickling a DictConfig takes a tenth of the time of a deep copy. `quick` sets
    fields without OmegaConf; None where the options need it.
    """

    pickled: bytes
    plain: dict[str, Any]
    choices: dict[str, str]
    quick: Plain | None

    def reads(self, key: str) -> bool:
        """Return whether the chosen option of the key's group has this field."""
        group, _, field = key.partition(".")
        return group not in part_groups() or field in self.plain[group] or _is_in_mapping(key)


def _is_in_mapping(key: str) -> bool:
    return key.rpartition(".")[0] in mappings_of_options()


BEHAVIOUR: Mapping[str, str] = {"version_base": "1.3"} if hydra_version.startswith("1.3") else {}
"""What Hydra 1.3 must be told to behave as it does since; 1.4 knows nothing else, and warns of being told."""


@contextmanager
def own_hydra() -> Iterator[None]:
    """Use Hydra with our configuration folder, even inside a Hydra job, which has a configuration of its own."""
    instance = GlobalHydra.instance()
    outer, instance.hydra = instance.hydra, None
    try:
        with initialize_config_dir(str(shipped_conf()), **BEHAVIOUR):
            yield
    finally:
        GlobalHydra.instance().hydra = outer


@cached_by_folders
def _compose_options(options: tuple[tuple[str, str], ...]) -> _Base:
    """Compose each choice of options once, however many runs share it: Hydra is slow."""
    for group, option in options:
        option_values(group, option)  # raises UserError for a file that Hydra would only trip over
    with own_hydra():
        try:
            composed = compose(
                PRIMARY, overrides=[f"{group}={quoted(option)}" for group, option in options], return_hydra_config=True
            )
        except HydraException as error:  # a defaults list of the user's
            raise UserError(f"{' '.join(map('='.join, options))}: {' '.join(str(error).split())}") from None
    chosen = {
        group: str(option) for group, option in composed.hydra.runtime.choices.items() if not group.startswith("hydra")
    }
    with open_dict(composed):
        composed.pop("hydra")
        fields = schema_of(composed.task.get("kind")).model_fields
        for group in part_groups():
            if group not in fields:  # what another task reads may be of another program
                continue
            try:
                _settle(composed[group], group, chosen[group])
            except UserError as error:
                raise UserError(f"{error}{_in_place_of_ours(group, chosen[group])}") from None
    plain = _plain(composed)
    return _Base(pickle.dumps(composed), plain, chosen, Plain.of(plain))


def _in_place_of_ours(group: str, option: str) -> str:
    """Say where an option of the user's took the place of ours: another program of Hydra has a folder conf, too."""
    taken = [path for path in option_files(group, option) if path.stem in shipped_options(group)]
    for path in (path for path in taken if not is_shipped(group, path.stem)):
        return (
            f"; {path} stands in place of ablab's own, since {path.parents[1]} is read as options of ablab; allowed: "
            "another folder to work in, or another name for that one"
        )
    return ""


def _settle(values: DictConfig, group: str, option: str) -> None:
    """Name the kind of the chosen part in place of its target, and add its own defaults.

    Remove fields that other options set but it lacks, such as a size's warm-up under plateau. What its own file sets
    stays: there, a field that it lacks is an error.
    """
    if TARGET in values:
        named = {key: values[key] for key in (TARGET, "kind") if key in values}
        values["kind"] = with_kind(group, named, option)["kind"]
        del values[TARGET]
    found = class_of(group, values.get("kind"))
    if found is None:
        return
    for name, default in defaults_of(group, values["kind"]).items():
        if name not in values:
            values[name] = default
    if group == "data":
        return
    own = option_values(group, option)
    for field in [str(field) for field in values if field not in found.model_fields and field not in own]:
        if f"{group}.{field}" not in all_fields():
            key, known = f"{group}.{field}", [name for name in all_fields() if name.startswith(f"{group}.")]
            raise UserError(f"{key}={values[field]}: no option of {group} has it; {choices(key, known)}")
        del values[field]


def _apply(base: _Base, overrides: Sequence[Override]) -> DictConfig:
    """Set fields as Hydra does."""
    config = cast(DictConfig, pickle.loads(base.pickled))
    for override in overrides:
        try:
            key = override.key_or_group
            is_open = _is_in_mapping(key) or isinstance(override.value(), dict)
            OmegaConf.update(config, key, override.value(), merge=True, force_add=is_open)
        except OmegaConfBaseException as error:
            raise UserError(f"{override.input_line}: {_message(error)}") from None
    return config


def _plain(config: DictConfig) -> dict[str, Any]:
    return cast(dict[str, Any], OmegaConf.to_container(config))


def _resolved(config: DictConfig, overrides: Sequence[Override]) -> dict[str, Any]:
    try:
        return cast(dict[str, Any], OmegaConf.to_container(config, resolve=True))
    except OmegaConfBaseException as error:
        typed = " ".join(str(override.input_line) for override in overrides)
        raise UserError(f"{typed}: {getattr(error, 'full_key', None) or ''}: {_message(error)}") from None


def _message(error: Exception) -> str:
    return " ".join(str(error).split("\n")[0].split())
