"""Fields set on plain values, as OmegaConf would set and resolve them, where that is simple.

OmegaConf takes milliseconds for each arm of a study. Nearly every word sets a field to a number, a word or null, and
nearly every interpolation is the value of one other field; what is not so simple is left to OmegaConf.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hydra.core.override_parser.types import Override

from ablab.fields import flatten

REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\}")
"""An interpolation that is the value of one other field, by its whole name."""

MISSING = "???"
"""How OmegaConf writes a value that is still missing."""


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

    def with_fields(self, overrides: Sequence[Override]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return nested values as written and as resolved with these fields set; None where only OmegaConf can."""
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
        return _nested(self.nested, fields), _nested(self.nested, resolved)


SCALARS = (int, float, bool, str, type(None))


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
