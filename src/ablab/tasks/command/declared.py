"""A study of commands: what an experiment file says of its command, in the words of runs."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ablab.errors import UserError, choices
from ablab.fields import as_typed
from ablab.tasks.command.words import ALL_NAMES, OF_A_RUN, Value, named_in


class CommandBlock(BaseModel):
    """The keys of an experiment file that make it a study of commands; see `Command`. `timeout`: minutes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    command: Annotated[list[str], Field(min_length=1)]
    inputs: list[str] = []
    environment: dict[str, str] = {}
    scores: Annotated[dict[str, dict[str, str | int | float]], Field(min_length=1)]
    check: dict[str, Value] = {}
    timeout: Annotated[float, Field(gt=0)] | None = None
    grace: Annotated[float, Field(ge=0)] | None = None


def in_words(block: CommandBlock, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other keys of the file with the block as words of `common`, and each of its names as a key of runs."""
    for name in block.scores:
        if not name.isidentifier() or not name.isascii():
            raise UserError(f"scores.{name}: allowed: a name of {ALL_NAMES}")
    for name in block.environment:
        if re.fullmatch(r"[\w.-]+", name, re.ASCII) is None:
            raise UserError(f"environment.{name}: allowed: a name of letters, digits, _, . and -")
    names = [name for name in named_in([*block.command, *block.environment.values()]) if name not in OF_A_RUN]
    found = dict(values)
    said = {key: getattr(block, key) for key in CommandBlock.model_fields if key in block.model_fields_set}
    words = ["task=command", *(f"task.{key}={_written(value)}" for key, value in said.items() if value is not None)]
    common = found.get("common", [])
    if not isinstance(common, list):
        raise UserError(f"common={as_typed(common)}: allowed: a list, such as [a, b]")
    found["common"] = [*words, *_renamed(common, names)]
    if isinstance(factors := found.get("factors"), Mapping):
        for name in factors:
            if not str(name).isidentifier() and any(f"{{{name}}}" in word for word in block.command):
                raise UserError(f"factors.{name}: allowed in braces: names of letters, digits and _, not a digit first")
        found["factors"] = {name: _levels(name, given, names) for name, given in factors.items()}
    if isinstance(arms := found.get("arms"), Mapping):
        found["arms"] = {name: _renamed(own, names) for name, own in arms.items()}
    if isinstance(worth := found.get("worth"), str):
        found["worth"] = _key(worth, names)
    for block_key in ("tune", "search"):
        if isinstance(inner := found.get(block_key), Mapping):
            found[block_key] = _searched(inner, names, next(iter(block.scores)), is_tuned=block_key == "tune")
    return found


def _searched(block: Mapping[str, Any], names: Sequence[str], score: str, *, is_tuned: bool) -> dict[str, Any]:
    found = {**({"metric": score} if is_tuned else {"objectives": [score]}), **block}
    if "key" in found:
        found["key"] = _key(str(found["key"]), names)
    if isinstance(space := found.get("space"), Mapping):
        found["space"] = {_key(str(key), names): _quoted(values) for key, values in space.items()}
    return found


def _quoted(values: Any) -> Any:
    """Return the levels of a space with text as the words of a run have it; an interval has none."""
    return (
        [_written(each) if isinstance(each, str) else each for each in values] if isinstance(values, list) else values
    )


def _levels(factor: str, given: Any, names: Sequence[str]) -> Any:
    """Return a factor's levels: those of a name in braces with the word of each."""
    if factor in OF_A_RUN:
        raise UserError(f"factors.{factor}: every run fills {{{factor}}} in itself; allowed: another name")
    if isinstance(given, Mapping):
        return {level: _renamed(words, names) for level, words in given.items()}
    if factor in names and isinstance(given, list):
        levels = {as_typed(level): [f"{_key(factor, names)}={_written(level)}"] for level in given}
        return levels if len(levels) == len(given) else given  # of equal levels, the design says what is wrong
    if factor.isidentifier() and factor not in names:
        raise UserError(
            f"factors.{factor}: no word of command has {{{factor}}}, so that its arms would be equal; "
            f"allowed: {', '.join(names) or f'a word of command with {{{factor}}} in it'}"
        )
    return given


def _renamed(words: Any, names: Sequence[str]) -> Any:
    """Return words with the key of runs in place of each name; what is no list of words is for validation to refuse."""
    if not isinstance(words, list):
        return words
    split = [word.partition("=") if isinstance(word, str) else (word, "", "") for word in words]
    return [f"{_key(key, names)}={value}" if equals else key for key, equals, value in split]


def _key(name: str, names: Sequence[str]) -> str:
    """Return the key of runs that a name stands for. Raises UserError for one that no word of the command has."""
    if name in names:
        return f"task.values.{name}"
    if name.isidentifier():
        from ablab.config.groups import groups
        from ablab.config.keys import all_fields

        if name not in groups() and name not in all_fields():
            raise UserError(f"{name}: no word of command has {{{name}}}; {choices(name, names)}")
    return name


_BARE = re.compile(r"[A-Za-z_][\w.+-]*")
_READ_OTHERWISE = ("true", "false", "null", "nan", "inf")


def _written(value: Any) -> str:
    """Return a value as Hydra's grammar reads it; nothing in its text is an interpolation."""
    from ablab.config.grammar import literal

    if isinstance(value, str):
        return value if _BARE.fullmatch(value) and value.lower() not in _READ_OTHERWISE else literal(value)
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_written(inside)}' for key, inside in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    return as_typed(value)
