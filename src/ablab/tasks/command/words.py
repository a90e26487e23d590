"""The words of a command, and what is filled in for the names in braces."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from ablab.errors import UserError, choices
from ablab.fields import as_typed

PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")
"""A name in braces. Any other brace, as in JSON, stands for itself."""

OF_A_RUN = ("seed", "folder", "result", "progress")
"""What every run fills in: its seed, its folder, and the files for its scores and for its curve."""

ALL_NAMES = "letters, digits and _, not a digit first"

Value = str | int | float | bool | None


def named_in(words: Iterable[str]) -> list[str]:
    """Return the names in braces, each once."""
    return list(dict.fromkeys(name for word in words for name in PLACE.findall(word)))


def filled(words: Iterable[str], values: Mapping[str, Value]) -> list[str]:
    """Return the words with the values in place of their names."""
    texts = {name: as_typed(value) for name, value in values.items()}
    return [PLACE.sub(lambda found: texts[found[1]], word) for word in words]


def check_words(command: Sequence[str], environment: Mapping[str, str], values: Collection[str]) -> None:
    """Raise UserError where a name stands for nothing, where nothing reads a value, and where nothing reads the seed.

    A value that nothing reads would make equal runs of different arms; so would a seed, of different copies.
    """
    if not command or not command[0].strip():
        raise UserError("command: has no words; allowed: a list of words, such as [python, train.py, --seed, '{seed}']")
    if any("\0" in word for word in (*command, *environment, *environment.values())):
        raise UserError("command: a word has a zero byte, which no program can be given; allowed: words without")
    read = named_in([*command, *environment.values()])
    for name in read:
        if name not in values and name not in OF_A_RUN:
            known = choices(name, [*values, *OF_A_RUN])
            raise UserError(f"command: {{{name}}} stands for no factor or value; {known}; common may give it one")
    for name in values:
        if name in OF_A_RUN:
            raise UserError(f"values.{name}: every run fills {{{name}}} in itself; allowed: another name")
        if name not in read:
            raise UserError(
                f"{name}: no word of command has {{{name}}}, so that it changes no run; allowed: one that has"
            )
    for name, why in (("seed", "copies of a run would be equal"), ("result", "nothing would say where scores go")):
        if name not in read:
            raise UserError(f"command: no word has {{{name}}}, so that {why}; allowed: one that has it")
