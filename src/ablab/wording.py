"""Words for people: numbers and things counted, long messages cut short, and what would upset a screen written out."""

import re
import unicodedata
from collections.abc import Callable, Iterable

Say = Callable[[str], None]
"""Tells a person a line. Code digests leave out a statement that only calls a parameter of this type."""

RANGE_FROM = 6
"""Consecutive numbers from which they are named by the first and the last."""
MOST_LISTED = 20
"""Numbers that a line lists."""

_REVERSING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
"""Unicode's marks that change the order of what follows on the line."""


def counted(numbers: Iterable[int]) -> str:
    """Return numbers as a person would list them: `1, 2, 3`, `1 to 300`, and of many others the first and the last."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    listed = [text for each in ranges for text in _named(each)]
    total = sum(map(len, ranges))
    return ", ".join(listed if len(listed) <= MOST_LISTED else [*listed[:3], "...", f"{listed[-1]} ({total} in all)"])


def _named(consecutive: list[int]) -> list[str]:
    few = len(consecutive) < RANGE_FROM
    return list(map(str, consecutive)) if few else [f"{consecutive[0]} to {consecutive[-1]}"]


def how_many(number: int, thing: str) -> str:
    """Return a number of things in words: `1 arm`, `2 arms`, `1,000 arms`."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def shortened(message: str) -> str:
    """Return a message in which no list of values is repeated whole: people know what they typed."""
    values = re.sub(r"\S{200,}", lambda found: f"{found[0][:120]}..." if "," in found[0] else found[0], message)
    return re.sub(r"((?:[-+.\w]+, ){20})(?:[-+.\d]+, ){20,}[-+.\d]+", r"\1...", values)


def visible(text: str) -> str:
    r"""Return a text for a screen: what would move its cursor, colour it or reverse its order is written out, as \x1b.

    Names and questions come from files that others may have written.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written_out(each) if _is_control(each) else each for each in text)


def _is_control(character: str) -> bool:
    is_format = unicodedata.bidirectional(character) in _REVERSING
    return is_format or (unicodedata.category(character) == "Cc" and character not in "\n\t")


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
