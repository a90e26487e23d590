"""What the options of a verb are: typed fields, read from `key=value` words, described where they are declared."""

import re
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from pydantic import ConfigDict, ValidationError

from ablab.errors import UserError, choices, first_error
from ablab.fields import Group


class Options(Group):
    """Base of the options of a verb, typed as `key=value` words.

    The docstring of a subclass is the text of the verb's help page; its first line is the verb's line in the overview.
    The docstring of a field is its description there. `usage`: first lines of the page.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)
    usage: ClassVar[Sequence[str]]


AnyOptions = TypeVar("AnyOptions", bound=Options)

RUN_ID = re.compile(r"r[0-9a-f]{4,}")
"""What looks like the id of a run, or the beginning of one."""


def read_words(kind: type[AnyOptions], arguments: Sequence[str]) -> AnyOptions:
    """Parse `key=value` words into options; UserError for unknown, missing or invalid keys.

    Values are plain strings, as a run's display name with its commas would not survive Hydra's grammar.
    """
    words: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if "run" in kind.model_fields and RUN_ID.fullmatch(argument):
            raise UserError(f"{argument}: a value without its key; did you mean run={argument}?")
        if key not in kind.model_fields:
            raise UserError(f"{argument}: no such key; {choices(key, kind.model_fields)}")
        if not equals:
            raise UserError(f"{key}: no value; allowed: {key}=<value>")
        words[key] = value
    for name, field in kind.model_fields.items():
        if field.is_required() and name not in words:
            raise UserError(f"{name}: missing; say {name}=<id>")
    try:
        return kind.model_validate(words, strict=False)
    except ValidationError as error:
        raise UserError(first_error(error, words)) from None


def split_words(kind: type[AnyOptions], arguments: Sequence[str]) -> tuple[AnyOptions, list[str]]:
    """Parse the words whose keys are options of the verb; return the options, and the other words."""
    own = [word for word in arguments if word.partition("=")[0] in kind.model_fields]
    return read_words(kind, own), [word for word in arguments if word not in own]
