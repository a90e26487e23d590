"""Every field of the configuration is one of three kinds; the run's identity follows from them.

*Recipe* decides the selected weights and makes the run id. *Evaluation* decides how the finished weights are
judged; it names an evaluation inside the run. *Runtime* is where and how the work is done; it names nothing.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field


class Role(Enum):
    """What a field decides."""

    RECIPE = "recipe"
    EVALUATION = "evaluation"
    RUNTIME = "runtime"


EVALUATION = Role.EVALUATION
RUNTIME = Role.RUNTIME

Probability = Annotated[float, Field(ge=0, le=1)]
DropProbability = Annotated[float, Field(ge=0, lt=1)]
"""A rate of ordinary dropout, which divides by 1 - p."""
Count = Annotated[int, Field(ge=1)]


class Group(BaseModel):
    """A typed part of the configuration. No coercion: `1` and `"1"` must not become two names of one run.

    A field bears the group's role, unless its annotation names another: `path: Annotated[str, RUNTIME]`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    role: ClassVar[Role] = Role.RECIPE

    def part(self, role: Role) -> dict[str, Any]:
        """The fields of one role as nested plain values."""
        content: dict[str, Any] = {}
        for name, field_role in type(self).roles().items():
            value = getattr(self, name)
            if isinstance(value, Group):
                if inner := value.part(role):
                    content[name] = inner
            elif field_role is role:
                content[name] = value
        return content

    @classmethod
    @cache
    def roles(cls) -> Mapping[str, Role]:
        """The role of each direct field; remembered, since planning a large study asks 100,000 times."""
        return {
            name: next((mark for mark in field.metadata if isinstance(mark, Role)), cls.role)
            for name, field in cls.model_fields.items()
        }

    @classmethod
    def walk(cls, prefix: str = "") -> Iterator[tuple[str, Role]]:
        """Dotted name and role of every leaf."""
        for name, role in cls.roles().items():
            inner = cls.model_fields[name].annotation
            if isinstance(inner, type) and issubclass(inner, Group):
                yield from inner.walk(f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", role


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested mapping by dotted names."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
