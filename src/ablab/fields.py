"""Base classes and annotations of configuration fields, each with a role from which the identity of runs follows.

*Recipe* fields decide the selected weights and make the run id. *Evaluation* fields decide how the finished weights are
judged; they name an evaluation inside the run. *Runtime* fields say where and how to compute; they name nothing.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


class Role(Enum):
    """The part of a run's identity that a field decides."""

    RECIPE = "recipe"
    EVALUATION = "evaluation"
    RUNTIME = "runtime"


EVALUATION = Role.EVALUATION
RUNTIME = Role.RUNTIME

DropProbability = Annotated[float, Field(ge=0, lt=1)]
"""A dropping rate, below 1: a part that is always dropped learns nothing."""
Count = Annotated[int, Field(ge=1)]
WholeNumber = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]
NonNegative = Annotated[float, Field(ge=0)]


def _known(steps: object) -> object:
    if steps is None:
        raise ValueError("allowed: a number of steps; by default it is training.max_steps, which is null")
    return steps


LastStep = Annotated[int, Field(ge=1), BeforeValidator(_known)]
"""The step at which a schedule ends, by default the last of the training."""


@dataclass(frozen=True)
class Formerly:
    """Marks a field that was added to the schema later, with the value that every run had before it existed.

    While the field has that value it stays out of the recipe, so that no id changes; if an old record lacks the field,
    the value is filled in. For a union (a group of options), `value` is the nested mapping of its part.
    """

    value: Any


@dataclass(frozen=True)
class ReadIf:
    """Marks a field that has an effect only under some values of the sibling fields `others`.

    `test` gets the values of those fields. `needs`: settings that give the field an effect, as a user would type them.
    A field without effect stays out of the recipe, and typing it is refused.
    """

    others: tuple[str, ...]
    test: Callable[..., bool]
    needs: str

    def holds(self, group: "Group") -> bool:
        """Return whether the field has an effect in this group."""
        return self.test(*(getattr(group, other) for other in self.others))


@dataclass(frozen=True)
class Marks:
    """The role and marks that the annotation of a field adds to its type."""

    role: Role
    formerly: Formerly | None
    read_if: ReadIf | None


class Group(BaseModel):
    """A typed part of the configuration. Values are not coerced: `1` and `"1"` must not become two names of one run.

    A field has the role of its group, unless its annotation names another: `path: Annotated[str, RUNTIME]`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    role: ClassVar[Role] = Role.RECIPE

    @model_validator(mode="before")
    @classmethod
    def _fill_in_what_came_later(cls, values: Any) -> Any:
        later = {name: marks.formerly.value for name, marks in cls.marks().items() if marks.formerly is not None}
        return {**later, **values} if later and isinstance(values, Mapping) else values

    def effective(self) -> "Group":
        """Return the group with the same effect and no idle fields, such as DropHead `none` for DropHead at rate 0."""
        return self

    def is_read(self, name: str) -> bool:
        """Return whether the other fields give this one an effect."""
        condition = type(self).marks()[name].read_if
        return condition is None or condition.holds(self)

    def part(self, role: Role) -> dict[str, Any]:
        """Return the fields of one role as nested plain values, without fields that have no effect."""
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
        """Return the marks of each direct field; cached, since planning a large study asks 100,000 times."""

        def first(field: Any, kind: type) -> Any:
            return next((mark for mark in field.metadata if isinstance(mark, kind)), None)

        return {
            name: Marks(first(field, Role) or cls.role, first(field, Formerly), first(field, ReadIf))
            for name, field in cls.model_fields.items()
        }

    @classmethod
    def walk(cls, prefix: str = "") -> Iterator[tuple[str, Role]]:
        """Yield the dotted name and role of every leaf."""
        for name, marks in cls.marks().items():
            inner = cls.model_fields[name].annotation
            if is_group(inner):
                yield from inner.walk(f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", marks.role

    @classmethod
    def types(cls, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield the dotted name and type of every leaf."""
        for name, field in cls.model_fields.items():
            if is_group(field.annotation):
                yield from field.annotation.types(f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", field.annotation


def is_group(kind: object) -> TypeGuard[type[Group]]:
    """Return whether an annotation is a group of fields."""
    # On Python 3.10, list[int] counts as a type, and then issubclass refuses it.
    return isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, Group)


def unsigned(value: Any) -> Any:
    """Return plain values with 0.0 for -0.0, which is equal to it and would name another run."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list):
        return [unsigned(inside) for inside in value]
    return {key: unsigned(inside) for key, inside in value.items()} if _is_mapping(value) else value


class TextShape(Enum):
    """The values of a field of text: `ONE` name, a `LIST` of names, or `ONE_OR_MORE`."""

    ONE = "one"
    LIST = "list"
    ONE_OR_MORE = "one or more"


def text_type(kind: Any) -> TextShape | None:
    """Return which text an annotation takes; None where it takes anything else, null aside."""
    leaves = list(alternatives(kind))
    lists = [leaf for leaf in leaves if get_origin(leaf) is list]
    if not leaves or not all(_is_name(leaf) or (leaf in lists and _holds_names(leaf)) for leaf in leaves):
        return None
    return TextShape.ONE if not lists else TextShape.LIST if len(lists) == len(leaves) else TextShape.ONE_OR_MORE


def alternatives(kind: Any) -> Iterator[Any]:
    """Yield the members of a union but null, without the annotations around them."""
    if get_origin(kind) is Annotated:
        yield from alternatives(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from alternatives(each)
    elif kind is not NoneType:
        yield kind


def _is_name(kind: Any) -> bool:
    return kind is str or (get_origin(kind) is Literal and all(isinstance(value, str) for value in get_args(kind)))


def _holds_names(kind: Any) -> bool:
    return all(text_type(inside) is TextShape.ONE for inside in get_args(kind))


_LEAVES = (str, int, float, list, type(None))
"""Types of most fields: a test for an abstract class takes ten times as long."""


def _is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, dict) or (not isinstance(value, _LEAVES) and isinstance(value, Mapping))


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested mapping as a flat one with dotted names."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if _is_mapping(value):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def as_typed(value: object) -> str:
    """Format a field's value as a user would type it: `null`, `true`, `[encoder,cross]`."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_inside, value))}]"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace('"', "")


_UNCLEAR = re.compile(r"|null|\s.*|.*\s|.*[][,'\"].*", re.DOTALL)
"""Text that would be another element of a list, or several, without quotes."""


def _inside(element: object) -> str:
    """Format an element of a list."""
    return repr(element) if isinstance(element, str) and _UNCLEAR.fullmatch(element) else as_typed(element)


SCHEMA: Literal[2] = 2
"""Part of every recipe: raised when the meaning of one changes, so that an old id never names a new experiment.

Records of SCHEMA 1 can be read, but their runs cannot be continued.
"""
