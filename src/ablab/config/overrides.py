"""Looks at the typed overrides before Hydra does, to word what is wrong with them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import OverrideParseException

from ablab.config.folder import default_choices, groups
from ablab.errors import UserError, choices


class UnknownKeyError(UserError):
    """Whoever has words of its own may know better what was meant."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


def parse(arguments: Sequence[str]) -> list[Override]:
    """The overrides by Hydra's grammar; UserError where it is broken."""
    parsed = []
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not key.strip() or (not equals and not argument.startswith("~")):
            raise UserError(f"{argument!r}: not an override; allowed: key=value, such as layerdrop=0.2 (see --help)")
        try:
            parsed += OverridesParser.create().parse_overrides([argument])
        except OverrideParseException as error:
            if key in groups():
                raise UserError(_unknown_option(argument, value, key)) from None
            reason = str(error).splitlines()[0]
            raise UserError(
                f"{argument!r}: not an override ({reason}); allowed: key=value, special characters in quotes "
                f"that the shell leaves alone: '{key}=\"...\"'"
            ) from None
    return parsed


def check(overrides: Sequence[Override], common: Collection[str], corpora: Mapping[str, Collection[str]]) -> None:
    """Raise UserError at the first override that one run cannot have.

    `common`: the dotted names of all fields but the corpus's; `corpora`: those of each corpus.
    """
    corpus = default_choices()["data"]
    for override in overrides:
        _check_kind(override)
        if override.key_or_group in groups():
            _check_option(override)
        if override.key_or_group == "data":
            corpus = str(override.value())
    everything = {*common, *(name for fields in corpora.values() for name in fields)}
    for override in overrides:
        key, line = override.key_or_group, override.input_line
        if key not in groups() and key not in everything:
            raise UnknownKeyError(_unknown(f"{line}", key, everything), key)
        if override.is_add() or override.is_force_add():
            raise UserError(f"{line}: there is nothing to add, {key} exists; allowed: {key}=value")
        if key.startswith("data.") and key not in corpora[corpus]:
            having = " or ".join(f"data={kind}" for kind, fields in corpora.items() if key in fields)
            raise UserError(f"{line}: no such key for data={corpus}; allowed with {having}")


def _check_kind(override: Override) -> None:
    """Of all that Hydra's grammar offers, a single run takes `key=value`."""
    key, line = override.key_or_group, override.input_line
    if key == "hydra" or key.startswith(("hydra.", "hydra/")):
        raise UserError(
            f"{line}: a single run has nothing of Hydra's to set; allowed with -m, or outputs=FOLDER for results"
        )
    if key == "experiment":
        raise UserError(f"{line}: an experiment has many runs; type python train.py -m {line}")
    if override.is_delete():
        raise UserError(f"{line}: nothing can be left out of a run; allowed: {key}=value")
    if override.is_sweep_override():
        raise UserError(f"{line}: several values, but this command trains one run; allowed: one value of {key}")
    if override.package is not None:
        raise UserError(f"{line}: a group has one place; allowed: {key}=option")


def _check_option(override: Override) -> None:
    group, value = override.key_or_group, override.value()
    if not isinstance(value, str) or value not in groups()[group]:
        raise UserError(_unknown_option(f"{override.input_line}", value, group))


def _unknown_option(line: str, value: object, group: str) -> str:
    return f"{line}: unknown option; {choices(value, groups()[group])}"


def _unknown(line: str, key: str, fields: Collection[str]) -> str:
    names = {*groups(), *fields}
    if inside := sorted(name for name in names if name.startswith(f"{key}.")):
        return f"{line}: {key} is not one field; allowed: {', '.join(inside)}"
    alike = {name for name in names if "." in name} if "." in key else names
    if full := list(_near(key, alike)):
        return f"{line}: no such key: {key}; did you mean {min(full, key=len)}?"
    siblings = sorted(name for name in names if name.rpartition(".")[0] == key.rpartition(".")[0])
    return f"{line}: no such key: {key}; allowed: {', '.join(siblings) or ', '.join(sorted(groups()))}"


def _near(key: str, names: Collection[str]) -> Iterator[str]:
    """The nearest name, or those whose last part is the nearest."""
    if near := get_close_matches(key, names, n=1):
        yield near[0]
        return
    last = get_close_matches(key.rpartition(".")[2], [name.rpartition(".")[2] for name in names], n=1)
    yield from (name for name in names if last and name.rpartition(".")[2] == last[0])
