"""The `key=value` words of a verb that composes no configuration, as typed options."""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from ablab.errors import UserError, choices, first_error
from ablab.fields import Group

AnyGroup = TypeVar("AnyGroup", bound=Group)


def read_words(kind: type[AnyGroup], arguments: Sequence[str]) -> AnyGroup:
    """Plain strings: a run's display name, commas and all, must not meet Hydra's grammar."""
    words: dict[str, Any] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or key not in kind.model_fields:
            raise UserError(f"{argument}: no such key; {choices(key, kind.model_fields)}")
        words[key] = value
    for name, field in kind.model_fields.items():
        if field.is_required() and name not in words:
            raise UserError(f"{name}: missing; say {name}=<id>")
    try:
        return kind.model_validate(words, strict=False)
    except ValidationError as error:
        raise UserError(first_error(error, words)) from None
