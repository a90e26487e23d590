"""Sentences of spelled-out numbers: what is drawn, and how num2words says it in a language.

Values are drawn without regard to the languages, from `Random.random` alone, the one method whose sequence
Python promises to keep. Around the numbers are signs and digits only, so that any pair of languages will do.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple, TypeVar

from ablab.errors import UserError

VERSION = 1
"""Of everything in this file; raise it when the same options would give other sentences."""

# Written as plain text is, not tokenised: scores are of detokenised text.
SEPARATORS = (", ", "; ", " + ", " / ", " - ", ": ", " = ", " < ")
ENDS = ("", "", ".", "!", "?")
ITEMS = (1, 2, 2, 3, 3)
MAX_MISSES = 2000
"""Draws refused in a row before the languages count as hopeless, or their sentences as used up."""


class Number(NamedTuple):
    """A value and the way of saying it: cardinal, ordinal, year, or an ISO currency."""

    way: str
    value: int | float


Option = TypeVar("Option")
Spell = Callable[[Number], str | None]


def speller(language: str) -> Spell:
    """How one language says a number; None where num2words has no words for it in that language.

    Languages differ in what they support, and say so by nearly any exception or by digits instead of words.
    """
    from num2words import CONVERTER_CLASSES

    converter: Any = CONVERTER_CLASSES[language]

    @cache
    def spell(number: Number) -> str | None:
        way, value = number
        try:
            if way == "cardinal":
                words = converter.to_cardinal(value)
            elif way == "ordinal":
                words = converter.to_ordinal(value)
            elif way == "year":
                words = converter.to_year(value)
            else:
                words = converter.to_currency(value, currency=way)
        except Exception:  # "not supported" has no type of its own there
            return None
        text = " ".join(str(words).split())
        return None if not text or any(sign.isdigit() for sign in text) else text

    return spell


def sentences(rng: Random, src: Spell, tgt: Spell) -> Iterator[tuple[str, str]]:
    """Endless pairs of one to three numbers. A number that either language cannot say is drawn again."""
    while True:
        numbers = [_sayable(rng, src, tgt) for _ in range(_choice(rng, ITEMS))]
        label = f"{1 + _below(rng, 99)}) " if rng.random() < 0.15 else ""
        separator, end = _choice(rng, SEPARATORS), _choice(rng, ENDS)
        yield (
            label + separator.join(source for source, _ in numbers) + end,
            label + separator.join(target for _, target in numbers) + end,
        )


def _sayable(rng: Random, src: Spell, tgt: Spell) -> tuple[str, str]:
    for _ in range(MAX_MISSES):
        number = _draw(rng)
        source, target = src(number), tgt(number)
        if source is not None and target is not None:
            return source, target
    raise UserError("num2words supports no kind of number in both data.src and data.tgt.")


def _draw(rng: Random) -> Number:
    """Cardinals up to the billions, and every other way of saying a number."""
    kind = rng.random()
    if kind < 0.35:
        return Number("cardinal", _of_some_length(rng, 10))
    if kind < 0.40:
        return Number("cardinal", -_of_some_length(rng, 4))
    if kind < 0.50:
        return Number("cardinal", _of_some_length(rng, 3) + (1 + _below(rng, 99)) / 100)
    if kind < 0.65:
        return Number("year", 1100 + _below(rng, 1000))
    if kind < 0.80:
        return Number("ordinal", 1 + _of_some_length(rng, 4))
    return Number(_choice(rng, ("EUR", "USD", "GBP")), _of_some_length(rng, 5) + _below(rng, 100) / 100)


def _of_some_length(rng: Random, digits: int) -> int:
    """A number below 10 ** digits. Short ones are frequent; one in five long ones is round."""
    length = 1 + min(_below(rng, digits), _below(rng, digits))
    zeros = _below(rng, length) if length > 3 and rng.random() < 0.2 else 0
    power: int = 10**zeros
    return _below(rng, 10**length // power) * power


def _below(rng: Random, limit: int) -> int:
    return int(rng.random() * limit)


def _choice(rng: Random, options: Sequence[Option]) -> Option:
    return options[_below(rng, len(options))]
