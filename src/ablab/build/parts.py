"""Construction of the part that an option names: it is handed its fields, and what it asks for by name."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ablab.config.options import Option, part_of
from ablab.parts.find import Part
from ablab.parts.load import load

Given = Mapping[str, Callable[[], Any]]
"""What the builder can supply, by name; made only for a part that asks for it."""


def make(option: Option, given: Given) -> Any:
    """Construct an option's part; of a function, return the function with all that it is handed already given."""
    part = named_part(option)
    found = load(part)
    handed = {name: given[name]() for name in part.signature.parameters if name in given}
    handed |= {name: value for name, value in option.own.items() if name in part.signature.parameters}
    return found(**handed) if part.signature.is_class else partial(found, **handed)


def named_part(option: Option) -> Part:
    """Return the part that an option names."""
    part = part_of(option.of_group, option.kind)
    assert part is not None, f"{option.of_group}={option.kind} has no part"
    return part


def given(values: Mapping[str, Any]) -> dict[str, Callable[[], Any]]:
    """Return plain values as what the builder can supply."""
    return {name: partial(_same, value) for name, value in values.items()}


def _same(value: Any) -> Any:
    return value
