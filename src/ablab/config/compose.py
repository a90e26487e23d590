"""From the words on the command line to a valid configuration, or to one line that says what is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ablab.config.rules import violations
from ablab.config.schema import Config
from ablab.config.smoke import shrink
from ablab.corpora import CORPORA
from ablab.corpora.base import Corpus
from ablab.errors import UserError, choices, first_error
from ablab.fields import flatten


@dataclass(frozen=True)
class Composed:
    """A valid configuration, and how it was chosen: an option per group, and the fields changed beside them."""

    config: Config
    choices: dict[str, str]
    changes: dict[str, Any]


def compose(arguments: Sequence[str]) -> Composed:
    """Compose and validate `key=value` words; UserError names the key, the value and what is allowed."""
    from ablab.config.overrides import check, parse
    from ablab.config.values import values_of

    overrides = parse(arguments)
    common = {name for name, _ in Config.walk() if name != "data"}
    check(overrides, common, {kind: {f"data.{name}" for name, _ in c.walk()} for kind, c in CORPORA.items()})
    typed = values_of(overrides)
    base, written, resolved = (flatten(values) for values in (typed.base, typed.written, typed.resolved))
    changes = {key: resolved[key] for key, value in written.items() if base.get(key) != value}
    values = shrink(typed.resolved) if typed.resolved["smoke"] else typed.resolved
    return Composed(validate(values), typed.choices, changes)


def validate(values: Mapping[str, Any]) -> Config:
    """A plain nested mapping as the typed configuration; UserError where a value or a combination is bad."""
    data = dict(values["data"])
    kind = data.get("kind")
    if kind not in CORPORA:
        raise UserError(f"data.kind={kind}: unknown corpus; {choices(kind, CORPORA)}")
    try:
        corpus: Corpus = CORPORA[kind].model_validate(data)
    except ValidationError as error:
        raise UserError(first_error(error, data, "data.")) from None
    try:
        config = Config.model_validate({**values, "data": corpus})
    except ValidationError as error:
        raise UserError(first_error(error, values)) from None
    for violation in violations(config):
        raise UserError(violation)
    return config
