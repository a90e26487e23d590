"""Every key that can be typed: the fields of all tasks, with their roles, and which of them take text."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

from ablab.code.folders import user_confs
from ablab.config.groups import groups
from ablab.config.kinds import fields_of_options, mappings_of_options, texts_of_options
from ablab.config.schema import Config, schemas
from ablab.fields import Group, Role, TextShape, text_type


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
    return key if key in fields else next((one for one in above if one in mappings_of_options(user_confs())), key)


def all_fields(corpus: type[Group] | None = None) -> Mapping[str, Role]:
    """Return dotted name and role of every field that some configuration has; with `corpus`, some configuration of it.

    A field of two corpora may be part of the recipe in only one of them: paths are, where nothing else identifies the
    text.
    """
    return _all_fields(corpus, user_confs())


@cache
def _all_fields(corpus: type[Group] | None, confs: Sequence[Path]) -> Mapping[str, Role]:
    walked = (field for schema in schemas() for field in schema.walk())
    fields = {name: role for name, role in walked if not name.startswith("data.")} | dict(fields_of_options())
    if corpus is None:
        return fields
    own = dict(corpus.walk("data."))
    return {name: role for name, role in fields.items() if not name.startswith("data.")} | own


def fields_beside(config: Config) -> Mapping[str, Role]:
    """Return dotted name and role of every field that some configuration has with the corpus of this one, if any."""
    corpus = getattr(config, "data", None)
    return all_fields(None if corpus is None else type(corpus))


def text_fields() -> Mapping[str, TextShape]:
    """Return the dotted name of every field whose values are text, and which text."""
    return _text_fields(user_confs())


@cache
def _text_fields(confs: Sequence[Path]) -> Mapping[str, TextShape]:
    typed = (each for schema in schemas() for each in schema.types())
    own = {name: found for name, kind in typed if (found := text_type(kind)) is not None}
    return {**own, **texts_of_options(confs)}


def text_of(key: str) -> TextShape | None:
    """Return what kind of text the values of a key are; None where they are none."""
    return TextShape.ONE if key in groups() else text_fields().get(key)
