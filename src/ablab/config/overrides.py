"""Parsing and checks of typed overrides before Hydra sees them, with error messages of our own."""

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from hydra.core.override_parser.types import Override
from hydra.errors import OverrideParseException

from ablab.code.folders import user_confs
from ablab.config.grammar import grammar, malformed
from ablab.config.groups import groups, implied_choices
from ablab.config.keys import field_of, key_of_now
from ablab.config.schema import schemas
from ablab.errors import UserError, check_text, choices
from ablab.text import program


class UnknownKeyError(UserError):
    """An unknown key. A command with keys of its own may catch this and suggest one of them."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


def parse(arguments: Sequence[str]) -> list[Override]:
    """Parse the overrides by Hydra's grammar; UserError for a syntax error."""
    parsed: list[Override] = []
    confs = user_confs()
    for argument in arguments:
        check_text(argument)
        key, equals, value = argument.partition("=")
        if not key.strip() or (not equals and not argument.startswith("~")):
            raise UserError(f"{argument!r}: not an override; allowed: key=value, such as layerdrop=0.2 (see --help)")
        try:
            parsed += _parsed(argument, confs)
        except OverrideParseException:
            if key in groups():
                raise UserError(_unknown_option(argument, value, key)) from None
            raise UserError(malformed(argument)) from None
    return parsed


@lru_cache(maxsize=4096)
def _parsed(argument: str, confs: Sequence[Path]) -> Sequence[Override]:
    """Parse one word: the arms of a study share most of theirs, and the parser is slow.

    confs: the user's folders of options, which have fields of their own.
    """
    return [in_words_of_now(override) for override in grammar().parse_overrides([argument])]


def in_words_of_now(override: Override) -> Override:
    """Replace a former key by the current one; messages still show the typed word."""
    override.key_or_group = key_of_now(override.key_or_group)
    return override


def check(overrides: Sequence[Override], fields: Collection[str]) -> None:
    """Raise UserError at the first override that no run can have. `fields`: the dotted names of all fields."""
    known = groups()
    for override in overrides:
        _check_kind(override)
        if override.key_or_group in known:
            _check_option(override)
    _check_implied([override for override in overrides if override.key_or_group in known])
    for override in overrides:
        key, line = override.key_or_group, override.input_line
        if gone := next((schema.gone[key] for schema in schemas() if key in schema.gone), None):
            raise UserError(f"{line}: no such key; allowed: {gone}")
        if key not in known and field_of(key, fields) not in fields:
            raise UnknownKeyError(_unknown(f"{line}", key, fields), key)
        if override.is_add() or override.is_force_add():
            raise UserError(f"{line}: there is nothing to add, {key} exists; allowed: {key}=value")
        group, _, field = key.partition(".")
        if group in known and field == "kind":
            raise UserError(
                f"{line}: a kind brings fields of its own, so it is chosen as an option; allowed: {group}=option"
            )


def _check_implied(options: Sequence[Override]) -> None:
    """Refuse an option that implies an option of another group beside a different option of that group."""
    chosen = {option.key_or_group: (option.value(), option.input_line) for option in options}
    for group, (option, line) in chosen.items():
        for other, meant in implied_choices(group, str(option)).items():
            value, typed = chosen.get(other, (meant, ""))
            if value != meant:
                raise UserError(f"{typed}: {line} means {other}={meant}; allowed: one of the two")


def _check_kind(override: Override) -> None:
    """Refuse everything in Hydra's grammar except `key=value`, which is all a single run takes."""
    key, line = override.key_or_group, override.input_line
    if key == "hydra" or key.startswith(("hydra.", "hydra/")):
        raise UserError(
            f"{line}: a single run has nothing of Hydra's to set; allowed with -m, or outputs=FOLDER for results"
        )
    if key == "experiment":
        raise UserError(f"{line}: an experiment has many runs; type {program('train')} -m {line}")
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
    meant = next((found for schema in schemas() if (found := schema.meant.get((group, str(value).lower())))), None)
    if meant is not None:
        return f"{line}: unknown option; allowed: {', '.join(groups()[group])}; did you mean {meant}?"
    return f"{line}: unknown option; {choices(str(value).lower(), groups()[group], likeness=0.8)}"


OF_SWEEPS = {
    **{key: f"hydra.launcher.{key}" for key in ("jobs", "gpus", "per_gpu")},
    **{key: f"hydra/{key}" for key in ("launcher", "sweeper")},
}
"""What is typed for how a sweep is made, which is no setting of a run."""


def _unknown(line: str, key: str, fields: Collection[str]) -> str:
    names = {*groups(), *fields}
    if key in OF_SWEEPS:
        return f"{line}: no such key: {key}; did you mean {OF_SWEEPS[key]}, which a sweep has (-m)?"
    if inside := sorted(name for name in names if name.startswith(f"{key}.")):
        return f"{line}: {key} is not one field; allowed: {', '.join(inside)}"
    alike = {name for name in names if "." in name} if "." in key else names
    if full := list(_near(key, alike)):
        return f"{line}: no such key: {key}; did you mean {min(full, key=len)}?"
    siblings = sorted(name for name in names if name.rpartition(".")[0] == key.rpartition(".")[0])
    return f"{line}: no such key: {key}; allowed: {', '.join(siblings) or ', '.join(sorted(groups()))}"


def _near(key: str, names: Collection[str]) -> Iterator[str]:
    """Yield the nearest name, or the names whose last part is the nearest."""
    if near := get_close_matches(key, names, n=1):
        yield near[0]
        return
    last = get_close_matches(key.rpartition(".")[2], [name.rpartition(".")[2] for name in names], n=1)
    yield from (name for name in names if last and name.rpartition(".")[2] == last[0])
