"""Which test sentences are looked at: a function of the test set alone, so that every arm shows the same."""

from collections.abc import Sequence

PAIRS = 4
LONGEST = 80
"""Bytes of UTF-8 of the longer side: some 14 words of English or German, 40 Cyrillic or 26 Chinese characters."""


def readable_pairs(sources: Sequence[str], references: Sequence[str], count: int = PAIRS) -> list[int]:
    """Numbers of `count` pairs whose maps can be read, from short to long.

    Pairs with an empty side and repeated ones are left out. The others with at most `LONGEST` bytes are ordered by
    those bytes, then by number, and cut into `count` equal parts: the middle one of each. Where fewer are as short,
    the shortest `count` of all.
    """
    first = {pair: number for number, pair in reversed(list(enumerate(zip(sources, references, strict=True))))}
    sizes = {number: max(map(_bytes, pair)) for pair, number in first.items() if all(side.strip() for side in pair)}
    ordered = sorted(sizes, key=lambda number: (sizes[number], number))
    short = [number for number in ordered if sizes[number] <= LONGEST]
    if len(short) < count:
        return ordered[:count]
    return [short[(2 * part + 1) * len(short) // (2 * count)] for part in range(count)]


def _bytes(text: str) -> int:
    return len(text.encode())
