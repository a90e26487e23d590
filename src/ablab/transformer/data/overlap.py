"""Overlap of splits: how many held-out sentences are trained on too, alike or nearly so, and training without them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from ablab.errors import UserError
from ablab.text import how_many
from ablab.transformer.data.corpus import Corpus, Pair
from ablab.transformer.data.keys import key, near_key

KINDS = ("pairs", "sources", "near")
"""What is compared: keys of both sides, keys of the sources, and near keys of the sources."""

Hashes = npt.NDArray[np.uint64]
"""Hashes of the keys of pairs, [pairs * kinds]: 24 bytes a pair stand for the text."""


def hashes(pairs: Iterable[Pair]) -> Hashes:
    """Return the hashes of the pairs, those of one pair in a row."""
    found = [_hash(text) for pair in pairs for text in _compared(pair)]
    return np.array(found, dtype=np.uint64)


def _compared(pair: Pair) -> tuple[str, str, str]:
    source = key(pair[0])
    return f"{source}\n{key(pair[1])}", source, near_key(source)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


@dataclass(frozen=True)
class Overlap:
    """Of `of` held-out pairs, how many share with another split: both sides, the source, nearly the source.

    Each number includes the one before it: `near` ignores case, punctuation and spaces, too.
    """

    of: int
    pairs: int
    sources: int
    near: int

    @classmethod
    def between(cls, held: Hashes, other: Hashes) -> "Overlap":
        """Count the held-out pairs that have a like in the other split."""
        ours, theirs = held.reshape(-1, len(KINDS)), other.reshape(-1, len(KINDS))
        counts = [int(np.isin(ours[:, kind], theirs[:, kind]).sum()) for kind in range(len(KINDS))]
        return cls(len(ours), *counts)

    def told(self, held: str, other: str) -> str | None:
        """Return a line on what the splits of these names share; None if they share nothing."""
        more, those = self.near - self.sources, f"{held} source"
        nearly = "in case, punctuation or spaces alone"
        if not self.near:
            return None
        if not self.sources:
            return f"{more:,} of {how_many(self.of, those)} differ from {other} sources {nearly}"
        same = f"{self.pairs:,} with the same target"
        said = f"{self.sources:,} of {how_many(self.of, those)} are {other} sources too, {same}"
        return f"{said}; {more:,} more differ from one {nearly}" if more else said


class TrainingPairs:
    """The training pairs of a corpus in order; with `overlap=drop`, without those whose source is held out, or nearly.

    `dropped`: how many were left out so far.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus, self.dropped = corpus, 0

    def __iter__(self) -> Iterator[Pair]:
        if self.corpus.overlap == "keep":
            yield from self.corpus.read_train()
            return
        splits = (self.corpus.valid_split(), *self.corpus.test_splits())
        held, left = {near_key(source) for split in splits for source, _ in split.pairs} - {""}, False
        for pair in self.corpus.read_train():
            if near_key(pair[0]) in held:
                self.dropped += 1
            else:
                yield pair
                left = True
        if not left:
            raise UserError(
                "data.overlap=drop: each training source is in validation or test; allowed: other files, or "
                "data.overlap=keep"
            )
