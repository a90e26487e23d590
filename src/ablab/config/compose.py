"""From the words on the command line to a valid configuration, or to one line that says what is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from ablab.config.folder import conf_dir
from ablab.config.rules import violations
from ablab.config.schema import Config
from ablab.config.smoke import shrink
from ablab.corpora import CORPORA
from ablab.corpora.base import Corpus
from ablab.errors import UserError, choices, first_error


@dataclass(frozen=True)
class Composed:
    """A valid configuration, and how it was chosen: an option per group, and the fields changed beside them."""

    config: Config
    choices: dict[str, str]
    changes: dict[str, Any]


def compose(arguments: Sequence[str]) -> Composed:
    """Compose and validate `key=value` words; UserError names the key, the value and what is allowed."""
    from ablab.config.overrides import check, parse

    overrides = parse(arguments)
    common = {name for name, _ in Config.walk() if name != "data"}
    check(overrides, common, {kind: {f"data.{name}" for name, _ in c.walk()} for kind, c in CORPORA.items()})
    typed = _compose_values(tuple(arguments))
    values, chosen = typed.values, typed.choices
    plain = _flatten(_compose_values(tuple(f"{group}={option}" for group, option in sorted(chosen.items()))).unresolved)
    resolved = _flatten(values)
    changes = {key: resolved[key] for key, value in _flatten(typed.unresolved).items() if plain.get(key) != value}
    return Composed(validate(shrink(values) if values["smoke"] else values), chosen, changes)


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


class _Raw(NamedTuple):
    """What Hydra composed: resolved, as written (`${layerdrop}` and all), and the option of each group."""

    values: dict[str, Any]
    unresolved: dict[str, Any]
    choices: dict[str, str]


@cache
def _compose_values(arguments: tuple[str, ...]) -> _Raw:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            composed = hydra_compose("config", overrides=list(arguments), return_hydra_config=True)
            chosen = {
                group: str(option)
                for group, option in composed.hydra.runtime.choices.items()
                if not group.startswith("hydra")
            }
            OmegaConf.set_struct(composed, False)
            composed.pop("hydra")
            values, unresolved = (OmegaConf.to_container(composed, resolve=resolve) for resolve in (True, False))
    except (HydraException, OmegaConfBaseException) as error:
        reason = " ".join(str(error).split("\n")[0].split())
        key = getattr(error, "full_key", None)
        raise UserError(f"{' '.join(arguments)}: {key + ': ' if key else ''}{reason}") from None
    return _Raw(cast(dict[str, Any], values), cast(dict[str, Any], unresolved), chosen)


def _flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
