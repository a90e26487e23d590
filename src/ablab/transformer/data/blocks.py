"""Sentence pairs on disk, in blocks that are read one at a time, so that a corpus of any size takes little memory.

Work on them takes long: whoever asks for it may show its progress.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import compress, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ablab.files.disk import naming
from ablab.seeding import derive
from ablab.transformer.data.corpus import Pair
from ablab.transformer.data.keys import has_both_sides

PAIRS = 10_000
"""Pairs of a block: a few megabytes."""

Rows = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Block:
    """So many pairs in a part of a file. `rows`: which of them are chosen; None: all."""

    path: Path
    begin: int
    size: int
    pairs: int
    rows: Rows | None = None

    @property
    def chosen(self) -> int:
        """Number of chosen pairs."""
        return self.pairs if self.rows is None else int(self.rows.sum())

    def sides(self) -> tuple[list[str], list[str]]:
        """Return the source and target sentences of the chosen pairs that have two sides."""
        with self.path.open("rb") as file:
            file.seek(self.begin)
            sides = pickle.loads(file.read(self.size))
        if self.rows is not None:
            sides = [list(compress(side, self.rows)) for side in sides]
        spoken = [has_both_sides(pair) for pair in zip(*sides, strict=True)]
        sources, targets = (list(compress(side, spoken)) for side in sides)
        return sources, targets


def write_blocks(
    path: Path, pairs: Iterable[Pair], as_read: Callable[[Sequence[Pair]], list[Pair]], advance: Callable[[int], object]
) -> list[Block]:
    """Write the pairs, as they are to be read; `advance` hears of each block. Pickles keep every character there is."""
    blocks = []
    with naming(path), path.open("wb") as file:
        for part in _parts(iter(pairs)):
            content = pickle.dumps(tuple(zip(*as_read(part), strict=True)), protocol=5)
            blocks.append(Block(path, file.tell(), len(content), len(part)))
            file.write(content)
            advance(len(part))
    return blocks


def _parts(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    while part := list(islice(pairs, PAIRS)):
        yield part


def with_rows(blocks: Sequence[Block], rows: Rows) -> Iterator[Block]:
    """Yield the blocks, of which only `rows` are chosen, counted from the first pair of the first block."""
    begin = 0
    for block in blocks:
        yield replace(block, rows=rows[begin : begin + block.pairs])
        begin += block.pairs


def subsample(count: int, wanted: int | None) -> Rows:
    """Return which of `count` pairs belong to a subsample of `wanted`; a larger one contains a smaller.

    It is the same for all runs and seeds, as the seed must not vary the corpus.
    """
    if wanted is None or wanted >= count:
        return np.ones(count, dtype=np.bool_)
    rows = np.zeros(count, dtype=np.bool_)
    rows[np.random.default_rng(derive(0, "subsample", count)).permutation(count)[:wanted]] = True
    return rows


Result = TypeVar("Result")

Counting = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
"""Opens a progress bar with a title and a total, if that is known, and yields a function that advances it."""


def unseen(title: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
    """Show no progress."""
    return nullcontext(lambda count: None)


def advancing(results: Iterable[Result], blocks: Sequence[Block], advance: Callable[[int], object]) -> Iterator[Result]:
    """Yield the results of blocks, and advance a bar by their pairs."""
    for result, block in zip(results, blocks, strict=True):
        yield result
        advance(block.chosen)
