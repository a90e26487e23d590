"""Kinds of options: the class that validates each, made from the signature of the part that it names.

A part asks for what it needs by naming it, so that none of it is threaded through the parts around. A parameter of any
other name is a field that users set, with the type and range that it declares.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from pydantic import ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError

from ablab.code.find import Part, find_part
from ablab.code.folders import cached_by_folders, shipped_targets
from ablab.code.load import load
from ablab.code.signature import MISSING, SignatureError
from ablab.config.groups import file_of, groups, kind_in, kinds
from ablab.config.options import Option
from ablab.config.schema import Config, part_groups
from ablab.errors import MissingPartError, UserError, choices, first_error, hint
from ablab.fields import Group, Role


class Made(Group):
    """An option whose class is made from a part. It cannot be imported by name, so a copy of it is validated anew."""

    made_for: ClassVar[str]

    def __reduce__(self) -> tuple[Any, ...]:
        return option, (self.made_for, self.model_dump())


class Outside(Made):
    """An option whose part is not ablab's. `code`: digest of the part's source; another code is another run."""

    kind: str
    code: str

    def part(self, role: Role) -> dict[str, Any]:
        """Return the fields of one role; the part is named by its target, as in its YAML file."""
        content = super().part(role)
        return {"_target_" if name == "kind" else name: value for name, value in content.items()}


@cached_by_folders
def class_of(group: str, kind: object) -> type[Group] | None:
    """Return the class that validates an option of this kind; None if no option here has this kind."""
    if kind not in kinds(group):
        return None
    part = part_of(group, str(kind))
    base = part_groups()[group].base(str(kind))
    if part is None:
        return base
    if part_groups()[group].is_declared:
        return _declared(group, base, part)
    for name in _fields(part, group):
        if name in ("kind", "code") or name.startswith("_") or (name not in base.model_fields and hasattr(base, name)):
            raise UserError(f"_target_={part.target}: {name}: no field can have this name; allowed: another name")
    fields = {name: (_type(part, group, name), ...) for name in _fields(part, group) if name not in base.model_fields}
    return base if part.is_own and not fields else _made(group, base, part, fields)


def _made(group: str, base: type[Group], part: Part, fields: Mapping[str, Any]) -> type[Group]:
    """Return a class with the fields of `base` and these."""
    bases = (Made if part.is_own else Outside, base)
    try:
        made: Any = create_model(base.__name__, __base__=bases, __module__=__name__, **dict(fields))
    except (PydanticUserError, SchemaError, TypeError, re.error) as error:
        raise UserError(f"_target_={part.target}: {' '.join(str(error).split())}") from None
    made.made_for = group
    return cast(type[Group], made)


def part_of(group: str, kind: str) -> Part | None:
    """Return the part behind a kind, read from its source; None for kinds that need none, such as no curve."""
    target = shipped_targets(group).get(kind)
    if target is not None:
        return find_part(target)
    if "." not in kind:
        return None
    files = [file_of(group, name) for name in groups()[group] if kind_in(group, name) == kind]
    try:
        return find_part(kind, [file.resolve().parents[2] for file in files])
    except UserError as error:
        raise UserError(": ".join([*map(str, files), str(error)])) from None


def chosen_part(option: Option) -> Part:
    """Return the part that an option names, which must be one that has any."""
    part = part_of(option.of_group, option.kind)
    assert part is not None, f"{option.of_group}={option.kind} has no part"
    return part


def asks_for(option: Option, name: str) -> bool:
    """Return whether the option's part has a parameter of this name."""
    part = part_of(option.of_group, option.kind)
    return part is not None and name in part.signature.parameters


def handed() -> Mapping[str, str]:
    """Return the fields outside a group that have an effect only where its part asks for them, and the group."""
    return {key: group for group, parts in part_groups().items() for key in parts.handed}


def unasked(config: Group) -> list[str]:
    """Return the fields of a configuration that have no effect, as the part that could read them does not ask."""
    chosen = {key: getattr(config, group, None) for key, group in handed().items()}
    return [key for key, part in chosen.items() if part is not None and not asks_for(part, key.rpartition(".")[2])]


def _fields(part: Part, group: str) -> Iterator[str]:
    """Yield the parameters of a part that are fields: all that the builder does not supply."""
    yield from (name for name in part.signature.parameters if name not in part_groups()[group].supplied)


def _type(part: Part, group: str, name: str) -> Any:
    try:
        return part.signature.type_of(name)
    except SignatureError as error:
        raise UserError(
            f"_target_={part.target}: {error}; allowed: a type such as float, Positive, Count or Literal, "
            f"or a name that {group} parts are given: {', '.join(part_groups()[group].supplied)}"
        ) from None


def _declared(group: str, base: type[Group], part: Part) -> type[Group]:
    """Import a part that declares its fields itself, as a pydantic model does: corpora read text and need no torch."""
    found = load(part)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UserError(
            f"_target_={part.target}: no {base.__name__.lower()}; allowed: a class that derives from "
            f"{base.__module__}.{base.__qualname__}"
        )
    return found if part.is_own else _made(group, found, part, {})


def class_recorded(group: str, values: Mapping[str, Any]) -> type[Group]:
    """Return the class of a recorded option; UserError if no option here names it."""
    found = class_of(group, values.get("kind"))
    if found is None:
        raise _unknown(group, values.get("kind"), values.get("code"))
    return found


def defaults_of(group: str, kind: str) -> dict[str, Any]:
    """Return the defaults of a part's fields: those of its signature, and of runtime fields that came later.

    Of a corpus, those of its class and of all fields that came later. Those of the YAML file go before.
    """
    if part_groups()[group].is_declared:
        found = class_of(group, kind)
        return {} if found is None else _defaults_in(found)
    part = part_of(group, kind)
    if part is None:
        return {}
    marks = part_groups()[group].base(kind).marks()
    late = {name: mark.formerly.value for name, mark in marks.items() if mark.formerly and mark.role is Role.RUNTIME}
    parameters = part.signature.parameters
    own = {name: parameters[name].default for name in _fields(part, group) if parameters[name].default is not MISSING}
    return {**late, **own}


def _defaults_in(found: type[Group]) -> dict[str, Any]:
    """Return the default values of a class's fields, as far as a YAML file could hold them."""
    plain = (type(None), bool, int, float, str, list, dict)
    fields = {name: field for name, field in found.model_fields.items() if not _is_computed(field)}
    own = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    late = {name: mark.formerly.value for name, mark in found.marks().items() if mark.formerly}
    return {name: value for name, value in {**own, **late}.items() if name != "kind" and type(value) in plain}


def _is_computed(field: FieldInfo) -> bool:
    """Return whether a default is made of the values of other fields."""
    return bool(getattr(field, "default_factory_takes_validated_data", False))


def option(group: str, values: Mapping[str, Any]) -> Group:
    """Return plain values as the option that their `kind` names; UserError for a bad kind or field."""
    found = class_recorded(group, values)
    filled = dict(values)
    if issubclass(found, Outside):
        filled["code"] = _checked_code(group, str(values["kind"]), values.get("code"))
    try:
        return found.model_validate(filled)
    except ValidationError as error:
        raise UserError(f"{first_error(error, values, f'{group}.')}{_near_supplied(group, error)}") from None


def _near_supplied(group: str, error: ValidationError) -> str:
    """Propose what parts of a group are given by ablab where a field that is missing has nearly such a name."""
    missing = [str(detail["loc"][0]) for detail in error.errors() if detail["type"] == "missing"]
    near = hint(missing[0], [*part_groups()[group].supplied]) if missing else ""
    return near.replace("?", f", which {group} parts are given?")


def with_options(kind: type[Group], values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace each option's plain values by an instance of its kind's class; UserError for a bad kind or field."""
    filled = dict(values)
    for group in part_groups():
        if group not in kind.model_fields:
            continue
        formerly = kind.marks()[group].formerly
        if group not in filled and formerly is not None:
            filled[group] = formerly.value
        if isinstance(filled.get(group), Mapping):
            filled[group] = option(group, filled[group])
    return filled


def _unknown(group: str, kind: object, code: object) -> UserError:
    if isinstance(kind, str) and "." in kind:
        return MissingPartError(
            f"{group} is {kind} ({code}), which no option here names; allowed: in the folder of its study, or with "
            f"--config-dir FOLDER, where FOLDER/{group}/<option>.yaml has _target_: {kind}",
            group,
        )
    if kind is None:
        return UserError(f"{group}.kind: missing; an option of one's own names its part by _target_: <module>.<class>")
    return UserError(f"{group}.kind={kind}: unknown; {choices(kind, kinds(group))}")


def _checked_code(group: str, kind: str, recorded: object) -> str:
    """Return the digest of a part's source; MissingPartError if it is not the recorded one."""
    part = part_of(group, kind)
    assert part is not None
    if recorded is not None and recorded != part.code:
        raise MissingPartError(
            f"{group} is {kind} ({recorded}), and {part.file} has other code ({part.code}); allowed: the source that "
            "it was trained with",
            group,
        )
    return part.code


def unmet_needs(config: Config) -> Iterator[str]:
    """Yield what a chosen part needs of another group: it says so in a class constant `needs`, kinds by group."""
    for group in (group for group in config.parts if group in type(config).model_fields):
        option = getattr(config, group)
        part = part_of(group, option.kind)
        if part is None:
            continue
        needs = part.signature.constants.get("needs", {})
        if not isinstance(needs, dict) or not needs.keys() <= {*config.parts}:
            yield f"{group}={option.kind}: needs = {needs}; allowed: kinds by group, of {', '.join(config.parts)}"
            continue
        for other, kind in needs.items():
            meant = {kind, kind_in(other, kind)} if kind in groups().get(other, ()) else {kind}
            if config.is_read(other) and (other_kind := getattr(config, other).kind) not in meant:
                yield f"{group}={option.kind}: needs {other}={kind}, got {other}={other_kind}; allowed: {other}={kind}"


def outside_parts(config: Group) -> dict[str, Part]:
    """Return the parts of a configuration that are not ablab's, by group."""
    chosen = ((group, getattr(config, group)) for group in part_groups() if group in type(config).model_fields)
    parts = {group: part_of(group, option.kind) for group, option in chosen if isinstance(option, Outside)}
    return {group: part for group, part in parts.items() if part is not None}
