"""Looks at the typed overrides before Hydra does, to word what is wrong with them."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import OverrideParseException

from ablab.config.folder import groups
from ablab.errors import UserError, choices


def parse(arguments: Sequence[str]) -> list[Override]:
    """The overrides by Hydra's grammar; UserError where it is broken."""
    parsed = []
    for argument in arguments:
        if "=" not in argument and not argument.startswith("~"):
            raise UserError(f"{argument!r}: not an override; allowed: key=value, such as layerdrop=0.2 (see --help)")
        try:
            parsed += OverridesParser.create().parse_overrides([argument])
        except OverrideParseException as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"{argument!r}: not an override ({reason}); quote special characters") from None
    return parsed


def check(overrides: Sequence[Override], known: Collection[str]) -> None:
    """Raise UserError at the first unknown key or group option. `known`: the dotted names of all fields."""
    names = {*groups(), *known}
    parents = {name.rpartition(".")[0] for name in known}
    for override in overrides:
        key = override.key_or_group
        if key.startswith("hydra") or override.is_force_add():
            continue
        if key in groups() and not override.is_delete():
            _check_option(key, override)
        elif key not in names and key not in parents:
            raise UserError(_unknown(f"{override.input_line}", key, names))


def _check_option(group: str, override: Override) -> None:
    values = override.sweep_iterator() if override.is_sweep_override() else [override.value()]
    for value in values:
        if str(value) not in groups()[group]:
            raise UserError(f"{group}={value}: unknown option; {choices(value, groups()[group])}")


def _unknown(line: str | None, key: str, names: Collection[str]) -> str:
    near = get_close_matches(key, names, n=1) or get_close_matches(
        key.rpartition(".")[2], [name.rpartition(".")[2] for name in names], n=1
    )
    full = [name for name in names if near and (name == near[0] or name.endswith(f".{near[0]}"))]
    if full:
        return f"{line}: no such key: {key}; did you mean {min(full, key=len)}?"
    siblings = sorted(name for name in names if name.rpartition(".")[0] == key.rpartition(".")[0])
    return f"{line}: no such key: {key}; allowed: {', '.join(siblings) or ', '.join(sorted(groups()))}"
