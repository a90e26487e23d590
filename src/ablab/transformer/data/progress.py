"""Progress of long work on a corpus, shown by whoever asked for it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from ablab.transformer.data.blocks import Block

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
