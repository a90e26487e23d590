"""Splitting of one corpus into training, validation and test pairs by the content of the pairs alone."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappush, heapreplace

from ablab.errors import UserError
from ablab.transformer.data.corpus import Pair
from ablab.transformer.data.keys import has_both_sides, key

_INVERTED = bytes(range(255, -1, -1))


@dataclass(frozen=True)
class HeldOut:
    """The held-out parts, and the source sentences of all of them by key: no pair with such a key is trained on."""

    parts: list[list[Pair]]
    sources: Mapping[str, str]

    def leaves(self, pair: Pair) -> bool:
        """Return whether a pair is left to train on."""
        return key(pair[0]) not in self.sources

    def is_twin(self, pair: Pair) -> bool:
        """Return whether the source is spelt otherwise than one that is held out, and read alike."""
        return self.sources.get(key(pair[0]), pair[0].strip()) != pair[0].strip()


def hold_out(pairs: Iterable[Pair], sizes: Sequence[int]) -> HeldOut:
    """Return as many held-out parts as there are `sizes`, each in the order of the corpus.

    A held-out part holds so many different source sentences: those whose SHA-256 is smallest, the last part first, so
    that the test pairs are the same whatever the size of the validation set. Sentences with one key, twins, are one
    sentence, in the spelling with the smallest SHA-256. It is in one part alone: of one that is held out the first
    translation is kept, and its other pairs are left out. UserError if it does not leave a pair to train on. Only as
    many pairs as are held out are in memory.
    """
    chosen, more = _Smallest(sum(sizes)), False
    for row, pair in enumerate(pairs):
        if has_both_sides(pair):
            more = chosen.offer(key(pair[0]), pair[0].strip(), (row, pair)) or more
    if not more:
        raise UserError(
            f"data.split=[{','.join(map(str, sizes))}]: the corpus has {len(chosen.first):,} different source "
            "sentences; allowed: fewer than these in all, as some are to train on"
        )
    ordered = chosen.ordered()
    parts, start = [], 0
    for size in reversed(sizes):
        rows = sorted(chosen.first[source] for source in ordered[start : start + size])
        parts.append([pair for _, pair in rows])
        start += size
    return HeldOut(parts[::-1], {source: spelt for _, source, spelt in chosen.largest})


_Entry = tuple[bytes, str, str]
"""The inverted digest of a source, its key, and its spelling."""


def _entry(source: str, spelt: str) -> _Entry:
    return hashlib.sha256(spelt.encode()).digest().translate(_INVERTED), source, spelt


class _Smallest:
    """The `size` sources with the smallest digests among those offered: the row and pair of each, by key."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.first: dict[str, tuple[int, Pair]] = {}
        self.largest: list[_Entry] = []  # a heap, the largest digest on top, as all are inverted

    def offer(self, source: str, spelt: str, found: tuple[int, Pair]) -> bool:
        """Consider a source by its key and its spelling; return whether one key too many was seen."""
        if source in self.first:
            self._respell(source, spelt, found)
            return False
        entry = _entry(source, spelt)
        is_full = len(self.first) == self.size
        if is_full and entry < self.largest[0]:
            return True
        if is_full:
            del self.first[heapreplace(self.largest, entry)[1]]
        else:
            heappush(self.largest, entry)
        self.first[source] = found
        return is_full

    def _respell(self, source: str, spelt: str, found: tuple[int, Pair]) -> None:
        """Take another spelling of a source if its digest is smaller."""
        before = self.first[source][1][0].strip()
        if spelt != before and (entry := _entry(source, spelt)) > (known := _entry(source, before)):
            self.largest[self.largest.index(known)] = entry
            heapify(self.largest)
            self.first[source] = found

    def ordered(self) -> list[str]:
        """Return the keys, the smallest digest first."""
        return [source for _, source, _ in sorted(self.largest, reverse=True)]
