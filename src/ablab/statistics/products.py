"""Products of resampling weights with the statistics of sentences: exact, and with no column computed twice.

Half of the columns of BLEU's statistics follow from others. The number of words of a hypothesis is its number of
1-grams; its n-grams are one less than its (n - 1)-grams, except in a sentence shorter than n; and the references are
those of every run. For whole numbers, products are exact in any order, so a column that follows is copied, or computed
from the one before and a few sentences. The results are equal to those of the whole product, bit for bit.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

BLOCK = 500
"""Rows computed at a time: more would only fill the caches."""

GUESSED = 100
"""Sentences that the usual gap between two columns is guessed from."""

FEW = 0.1
"""Largest share of the sentences that may differ, if a column is to be computed from the one before."""

AnyFloat = np.floating[Any]
Columns = npt.NDArray[AnyFloat]
Places = npt.NDArray[np.intp]
Found = TypeVar("Found")


def exact(statistics: npt.NDArray[Any]) -> Columns:
    """[..., sentences, k] in float32 where no sum over sentences can round in it, as with counts; else in float64.

    Products of matrices are twice as fast then. float32 has every whole number up to 2^24.
    """
    largest = float(np.abs(statistics).max(initial=0.0)) * statistics.shape[-2]
    whole = largest < 2**24 and bool((statistics == np.rint(statistics)).all())
    return statistics.astype(np.float32 if whole else np.float64, copy=False)


def products(
    rows: npt.NDArray[np.integer[Any]], statistics: Columns, then: Callable[[Columns], Found]
) -> Iterator[Found]:
    """Yield what `then` makes of each block [b, seeds, k] of weighted sums over sentences, in the order of the rows.

    rows: weights, [resamples, sentences]; statistics: [seeds, sentences, k]. Those in float32 are taken to be whole
    numbers whose sums do not round, as `exact` leaves them. The sums are in the precision of the statistics, and in
    memory each statistic lies by itself, so that a score which combines statistics reads them in order.
    """
    seeds, count, width = statistics.shape
    columns = statistics.transpose(1, 2, 0).reshape(count, width * seeds)
    plan = Plan.of(columns, seeds) if columns.dtype == np.float32 else None

    def of_block(at: int) -> Found:
        block = rows[at : at + BLOCK].astype(columns.dtype)
        sums = columns.T @ block.T if plan is None else plan.product(block)
        return then(sums.reshape(width, seeds, len(block)).transpose(2, 1, 0))

    yield from _shared(of_block, range(0, len(rows), BLOCK))


def _shared(work: Callable[[int], Found], places: Sequence[int]) -> Iterator[Found]:
    """Yield the results in order, by as many threads as a matrix product would have, each with a product of its own.

    Threads that share one product wait for each other at its end. Where another process has one of their cores, as
    training does beside a report, that takes forty times as long; a product of one thread takes three times.
    """
    blas = _blas()
    threads = max((library.num_threads for library in blas.lib_controllers), default=1)
    with blas.limit(limits=1), ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, places)


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@dataclass(frozen=True)
class Plan:
    """How the columns of a product follow from each other.

    `computed`: columns that do not follow, [c, sentences], at the places `at`. `source`: for each place, the one that
    it equals. `steps`: places that follow from the one that lies `apart` before, by a `constant` for each sentence, and
    by `rest` in the sentences `few`, [steps, few].
    """

    computed: Columns
    at: Places
    source: Places
    steps: Places
    constants: Columns
    few: Places
    rest: Columns
    apart: int

    @classmethod
    def of(cls, columns: Columns, apart: int = 1) -> "Plan":
        """Find what follows from what. columns: [sentences, m]; apart: places between two statistics of a run."""
        count, number = columns.shape
        source = _first_equal(columns)
        own = np.flatnonzero(source == np.arange(number))
        later = own[own >= apart]
        gaps = columns[:, later] - columns[:, later - apart]
        constants = np.median(gaps[:: max(1, count // GUESSED)], axis=0)  # a guess, which the gaps then test
        constants = np.where(constants == np.rint(constants), constants, 0.0).astype(columns.dtype)
        gaps = gaps - constants
        follows = np.count_nonzero(gaps, axis=0) <= FEW * count
        steps, gaps = later[follows], gaps[:, follows]
        few = np.flatnonzero(gaps.any(axis=1))
        if few.size > 2 * FEW * count:  # together, the few are many
            steps, gaps, few, follows = steps[:0], gaps[:, :0], few[:0], np.zeros_like(follows)
        at = np.setdiff1d(own, steps)
        computed = np.ascontiguousarray(columns[:, at].T)
        return cls(computed, at, source, steps, constants[follows], few, np.ascontiguousarray(gaps[few].T), apart)

    def product(self, block: Columns) -> Columns:
        """Return columns.T @ block.T, [m, b]. block: whole numbers, [b, sentences]."""
        found = np.empty((self.source.size, len(block)), dtype=block.dtype)
        found[self.at] = self.computed @ block.T
        if self.steps.size:
            added = self.rest @ block[:, self.few].T + self.constants[:, None] * block.sum(axis=1)
            # One statistic after the other: a place may follow from one that itself followed.
            for rows in np.split(np.arange(self.steps.size), np.flatnonzero(np.diff(self.steps // self.apart)) + 1):
                places = self.steps[rows]
                found[places] = found[self.source[places - self.apart]] + added[rows]
        copied = np.flatnonzero(self.source != np.arange(self.source.size))
        found[copied] = found[self.source[copied]]
        return found


def _first_equal(columns: Columns) -> Places:
    """Return for each column the place of the first that equals it."""
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(column.tobytes(), place) for place, column in enumerate(columns.T.copy())])
