"""Generation of sentences of spelled-out numbers: draws values and spells them with num2words.

Values are drawn independently of the languages, with `Random.random` alone, the one method whose sequence Python
guarantees. Only signs and digits surround the numbers, so that any pair of languages works.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple, TypeVar

from ablab.errors import UserError

VERSION = 1
"""Version of the generator; raise it when the same options would give other sentences."""

# Written as in plain text, not tokenised: scores are of detokenised text.
SEPARATORS = (", ", "; ", " + ", " / ", " - ", ": ", " = ", " < ")
ENDS = ("", "", ".", "!", "?")
ITEMS = (1, 2, 2, 3, 3)
MAX_MISSES = 2000
"""Rejected draws in a row before giving up: no common kind of number, or no new sentence left."""


class Number(NamedTuple):
    """A value and its form: cardinal, ordinal, year, or an ISO currency code."""

    way: str
    value: int | float


Option = TypeVar("Option")
Spell = Callable[[Number], str | None]


def speller(language: str) -> Spell:
    """Return a function that spells a number in one language, or returns None if num2words cannot.

    Languages differ in what they support; num2words raises nearly any exception, or returns digits, for the rest.
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
    """Yield endless sentence pairs of one to three numbers. Draws again a number that either language cannot spell."""
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
    """Draw a number: a cardinal up to the billions, negative or decimal too, a year, an ordinal or a sum of money."""
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
    """Draw a number below 10 ** digits. Short ones are frequent; one in five long ones is round."""
    length = 1 + min(_below(rng, digits), _below(rng, digits))
    zeros = _below(rng, length) if length > 3 and rng.random() < 0.2 else 0
    power: int = 10**zeros
    return _below(rng, 10**length // power) * power


def _below(rng: Random, limit: int) -> int:
    return int(rng.random() * limit)


def _choice(rng: Random, options: Sequence[Option]) -> Option:
    return options[_below(rng, len(options))]
