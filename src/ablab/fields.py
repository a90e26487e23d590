"""Every field of the configuration is one of three kinds; the run's identity follows from them.

*Recipe* decides the selected weights and makes the run id. *Evaluation* decides how the finished weights are
judged; it names an evaluation inside the run. *Runtime* is where and how the work is done; it names nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ablab.errors import UserError, choices, first_error


class Role(Enum):
    """What a field decides."""

    RECIPE = "recipe"
    EVALUATION = "evaluation"
    RUNTIME = "runtime"


EVALUATION = Role.EVALUATION
RUNTIME = Role.RUNTIME

DropProbability = Annotated[float, Field(ge=0, lt=1)]
"""A rate of dropping: below 1, since what is always dropped learns nothing."""
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Formerly:
    """Marks a field that was added to the schema later, with the value that every run had before it existed.

    While the field has that value it stays out of the recipe, so that no id changes; where an old record lacks the
    field, the value is filled in. Of a union (a group of options), `value` is the nested mapping of its part.
    """

    value: Any


@dataclass(frozen=True)
class ReadIf:
    """Marks a field that has an effect only under some values of `others`, fields beside it.

    `test` gets the values of those. `needs`: what gives the field effect, as one would type it. A field without effect
    stays out of the recipe, and typing it is refused.
    """

    others: tuple[str, ...]
    test: Callable[..., bool]
    needs: str

    def holds(self, group: "Group") -> bool:
        """Whether the field has an effect in this group."""
        return self.test(*(getattr(group, other) for other in self.others))


@dataclass(frozen=True)
class Marks:
    """What the annotation of a field says beside its type."""

    role: Role
    formerly: Formerly | None
    read_if: ReadIf | None


class Group(BaseModel):
    """A typed part of the configuration. No coercion: `1` and `"1"` must not become two names of one run.

    A field bears the group's role, unless its annotation names another: `path: Annotated[str, RUNTIME]`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    role: ClassVar[Role] = Role.RECIPE

    @model_validator(mode="before")
    @classmethod
    def _fill_in_what_came_later(cls, values: Any) -> Any:
        later = {name: marks.formerly.value for name, marks in cls.marks().items() if marks.formerly is not None}
        return {**later, **values} if later and isinstance(values, Mapping) else values

    def effective(self) -> "Group":
        """The group that has the same effect with nothing idle in it, such as DropHead at rate 0: none."""
        return self

    def is_read(self, name: str) -> bool:
        """Whether the other fields give this one an effect."""
        condition = type(self).marks()[name].read_if
        return condition is None or condition.holds(self)

    def part(self, role: Role) -> dict[str, Any]:
        """The fields of one role as nested plain values, without those that have no effect."""
        content: dict[str, Any] = {}
        for name, marks in type(self).marks().items():
            if not self.is_read(name):
                continue
            value = getattr(self, name)
            if isinstance(value, Group):
                plain: Any = value.effective().part(role)
                if not plain:
                    continue
            elif marks.role is role:
                plain = value
            else:
                continue
            if marks.formerly is None or plain != marks.formerly.value:
                content[name] = plain
        return content

    @classmethod
    @cache
    def marks(cls) -> Mapping[str, Marks]:
        """The marks of each direct field; remembered, since planning a large study asks 100,000 times."""

        def first(field: Any, kind: type) -> Any:
            return next((mark for mark in field.metadata if isinstance(mark, kind)), None)

        return {
            name: Marks(first(field, Role) or cls.role, first(field, Formerly), first(field, ReadIf))
            for name, field in cls.model_fields.items()
        }

    @classmethod
    def walk(cls, prefix: str = "") -> Iterator[tuple[str, Role]]:
        """Dotted name and role of every leaf."""
        for name, marks in cls.marks().items():
            inner = cls.model_fields[name].annotation
            if isinstance(inner, type) and issubclass(inner, Group):
                yield from inner.walk(f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", marks.role


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested mapping by dotted names."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def as_typed(value: object) -> str:
    """A field's value as one would type it: `null`, `true`, `[encoder,cross]`."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":")).replace('"', "")


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
