"""Splitting of one corpus into training, validation and test pairs by the content of the pairs alone."""

import hashlib
from collections.abc import Sequence

from ablab.data.corpus import Pair
from ablab.errors import UserError


def split_pairs(pairs: Sequence[Pair], sizes: Sequence[int]) -> list[list[Pair]]:
    """Return the training pairs, then as many held-out parts as there are `sizes`, each in the order of the corpus.

    A held-out part holds so many different source sentences: those whose SHA-256 is smallest, the last part first, so
    that the test pairs are the same whatever the size of the validation set. A source sentence is in one part alone:
    of one that is held out the first translation is kept, and its other pairs are left out. UserError if it does not
    leave a pair to train on.
    """
    first: dict[str, int] = {}
    for row, (source, target) in enumerate(pairs):
        if source.strip() and target.strip():
            first.setdefault(source.strip(), row)
    if sum(sizes) >= len(first):
        raise UserError(
            f"data.split=[{','.join(map(str, sizes))}]: the corpus has {len(first):,} different source sentences; "
            "allowed: fewer than these in all, as some are to train on"
        )
    ordered = sorted(first, key=lambda source: hashlib.sha256(source.encode()).digest())
    parts, start = [], 0
    for size in reversed(sizes):
        parts.append([pairs[row] for row in sorted(first[source] for source in ordered[start : start + size])])
        start += size
    held = set(ordered[:start])
    return [[pair for pair in pairs if pair[0].strip() not in held], *reversed(parts)]
