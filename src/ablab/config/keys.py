"""Every key that can be typed: the fields of all tasks, with their roles, and which of them take text."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar, get_origin

from ablab.code.folders import cached_by_folders
from ablab.config.groups import groups, kinds, option_values
from ablab.config.kinds import class_of, handed, part_of
from ablab.config.schema import Config, part_groups, schemas
from ablab.errors import UserError
from ablab.fields import Group, Role, TextShape, alternatives, text_type

R = TypeVar("R")


def key_of_now(key: str) -> str:
    """Return the current key for a former one; any other key is returned unchanged."""
    return next((schema.words[key] for schema in schemas() if key in schema.words), key)


def key_of(word: str) -> str:
    """Return the current name of the key in `key=value`."""
    return key_of_now(word.partition("=")[0])


def field_of(key: str, fields: Collection[str]) -> str:
    """Return the field that a key sets, which is the key, but for one inside a mapping, such as `task.values.lr`."""
    parts = key.split(".")
    above = (".".join(parts[:count]) for count in range(1, len(parts)))
    return key if key in fields else next((one for one in above if one in mappings_of_options()), key)


@cached_by_folders
def all_fields(corpus: type[Group] | None = None) -> Mapping[str, Role]:
    """Return dotted name and role of every field that some configuration has; with `corpus`, some configuration of it.

    A field of two corpora may be part of the recipe in only one of them: paths are, where nothing else identifies the
    text.
    """
    walked = (field for schema in schemas() for field in schema.walk())
    fields = {name: role for name, role in walked if name.partition(".")[0] != "data"} | dict(fields_of_options())
    if corpus is None:
        return fields
    own = dict(corpus.walk("data."))
    return {name: role for name, role in fields.items() if not name.startswith("data.")} | own


def fields_beside(config: Config) -> Mapping[str, Role]:
    """Return dotted name and role of every field that some configuration has with the corpus of this one, if any."""
    corpus = getattr(config, "data", None)
    return all_fields(None if corpus is None else type(corpus))


@cached_by_folders
def text_fields() -> Mapping[str, TextShape]:
    """Return the dotted name of every field whose values are text, and which text."""
    typed = (each for schema in schemas() for each in schema.types())
    own = {name: found for name, kind in typed if (found := text_type(kind)) is not None}
    return {**own, **texts_of_options()}


def text_of(key: str) -> TextShape | None:
    """Return what kind of text the values of a key are; None where they are none."""
    return TextShape.ONE if key in groups() else text_fields().get(key)


def fields_of(group: str, option: str) -> Collection[str] | None:
    """Return the names of the fields that an option reads; None for groups whose options all read the same."""
    if group not in part_groups():
        return None
    found = class_of(group, option_values(group, option).get("kind"))
    return None if found is None else [name for name in found.model_fields if name != "code"]


def _classes_of_kinds() -> Iterator[tuple[str, type[Group]]]:
    """Yield the class of each kind, with its group. A part that cannot be read is an error only where it is chosen."""
    for group in part_groups():
        for kind in sorted(kinds(group)):
            if (found := _if_readable(class_of, group, kind)) is not None:
                yield group, found


@cached_by_folders
def fields_of_options() -> Mapping[str, Role]:
    """Return dotted name and role of every field of every kind."""
    walked = ((group, field) for group, kind in _classes_of_kinds() for field in kind.walk(f"{group}."))
    return {name: role for group, (name, role) in walked if name != f"{group}.code"}


@cached_by_folders
def texts_of_options() -> Mapping[str, TextShape]:
    """Return the dotted name of every field that takes text under every kind that has it, and which text."""
    found: dict[str, TextShape | None] = {}
    for group, kind in _classes_of_kinds():
        for name, annotation in kind.types(f"{group}."):
            text = text_type(annotation)
            known = found.get(name, text)
            found[name] = text if known is text else TextShape.ONE_OR_MORE if known and text else None
    return {name: text for name, text in found.items() if text is not None}


@cached_by_folders
def mappings_of_options() -> Collection[str]:
    """Return the dotted name of every field that is a mapping: keys below it can be typed that no schema names."""
    typed = (field for group, kind in _classes_of_kinds() for field in kind.types(f"{group}."))
    return {name for name, annotation in typed if any(get_origin(each) is dict for each in alternatives(annotation))}


def readers(key: str) -> tuple[str, ...]:
    """Return the options of the group in `group.field` that read the field."""
    group, _, field = key.partition(".")
    return tuple(name for name in groups()[group] if field in (_if_readable(fields_of, group, name) or ()))


def askers(key: str) -> tuple[str, ...]:
    """Return the options whose parts ask for a field outside their group."""
    group, name = handed()[key], key.rpartition(".")[2]
    return tuple(option for option in groups()[group] if name in (_if_readable(_parameters_of, group, option) or ()))


def _parameters_of(group: str, option: str) -> Collection[str]:
    part = part_of(group, str(option_values(group, option).get("kind")))
    return () if part is None else part.signature.parameters


def _if_readable(read: Callable[[str, str], R | None], group: str, name: str) -> R | None:
    """Return what is read of a part, or None where its source cannot be read."""
    try:
        return read(group, name)
    except UserError:
        return None
