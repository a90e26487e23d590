"""Splitting of one corpus into training, validation and test pairs by the content of the pairs alone."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace

from ablab.data.corpus import Pair
from ablab.errors import UserError

_INVERTED = bytes(range(255, -1, -1))


@dataclass(frozen=True)
class HeldOut:
    """The held-out parts, and the source sentences of all of them, on none of whose pairs is trained."""

    parts: list[list[Pair]]
    sources: frozenset[str]

    def leaves(self, pair: Pair) -> bool:
        """Return whether a pair is left to train on."""
        return pair[0].strip() not in self.sources


def hold_out(pairs: Iterable[Pair], sizes: Sequence[int]) -> HeldOut:
    """Return as many held-out parts as there are `sizes`, each in the order of the corpus.

    A held-out part holds so many different source sentences: those whose SHA-256 is smallest, the last part first, so
    that the test pairs are the same whatever the size of the validation set. A source sentence is in one part alone:
    of one that is held out the first translation is kept, and its other pairs are left out. UserError if it does not
    leave a pair to train on. Only as many pairs as are held out are in memory.
    """
    wanted, more = sum(sizes), False
    first: dict[str, tuple[int, Pair]] = {}
    largest: list[tuple[bytes, str]] = []  # a heap, the largest digest on top, as all are inverted
    for row, pair in enumerate(pairs):
        source = pair[0].strip()
        if not source or not pair[1].strip() or source in first:
            continue
        entry = (hashlib.sha256(source.encode()).digest().translate(_INVERTED), source)
        if len(first) < wanted:
            heappush(largest, entry)
        else:
            more = True
            if entry < largest[0]:
                continue
            del first[heapreplace(largest, entry)[1]]
        first[source] = (row, pair)
    if not more:
        raise UserError(
            f"data.split=[{','.join(map(str, sizes))}]: the corpus has {len(first):,} different source sentences; "
            "allowed: fewer than these in all, as some are to train on"
        )
    ordered = [source for _, source in sorted(largest, reverse=True)]
    parts, start = [], 0
    for size in reversed(sizes):
        rows = sorted(first[source] for source in ordered[start : start + size])
        parts.append([pair for _, pair in rows])
        start += size
    return HeldOut(parts[::-1], frozenset(first))
