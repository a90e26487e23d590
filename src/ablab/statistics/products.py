"""Products of resampling weights with the statistics of sentences: exact, and with no column computed twice.

Half of the columns of BLEU's statistics follow from others. The number of words of a hypothesis is its number of
1-grams; its n-grams are one less than its (n - 1)-grams, except in a sentence shorter than n; and the references are
those of every run. For whole numbers, products are exact in any order, so a column that follows is copied, or computed
from the one before and a few sentences. The results are equal to those of the whole product, bit for bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 500
"""Rows computed at a time: more would only fill the caches."""

FEW = 0.1
"""Largest share of the sentences that may differ, if a column is to be computed from the one before."""

AnyFloat = np.floating[Any]
Columns = npt.NDArray[AnyFloat]
Places = npt.NDArray[np.intp]


def exact(statistics: npt.NDArray[Any]) -> Columns:
    """[..., sentences, k] in float32 where no sum over sentences can round in it, as with counts; else in float64.

    Products of matrices are twice as fast then. float32 has every whole number up to 2^24.
    """
    largest = float(np.abs(statistics).max(initial=0.0)) * statistics.shape[-2]
    whole = largest < 2**24 and bool((statistics == np.rint(statistics)).all())
    return statistics.astype(np.float32 if whole else np.float64, copy=False)


def products(rows: npt.NDArray[np.integer[Any]], columns: Columns) -> Iterator[Columns]:
    """Blocks of rows @ columns, in the precision of the columns. rows: [resamples, sentences]; columns: [sentences, m].

    Columns in float32 are taken to be whole numbers whose sums do not round, as `exact` leaves them.
    """
    plan = Plan.of(columns) if columns.dtype == np.float32 else None
    for at in range(0, len(rows), BLOCK):
        block = rows[at : at + BLOCK].astype(columns.dtype)
        yield block @ columns if plan is None else plan.product(block)


@dataclass(frozen=True)
class Plan:
    """How the columns of a product follow from each other.

    `computed`: columns that do not follow, [sentences, c], at the places `at`. `source`: for each place, the one that
    it equals. `steps`: places that follow from the one before by a `constant` for each sentence, and by `rest` in the
    sentences `few`, [few, steps].
    """

    computed: Columns
    at: Places
    source: Places
    steps: Places
    constants: Columns
    few: Places
    rest: Columns

    @classmethod
    def of(cls, columns: Columns) -> "Plan":
        """Find what follows from what."""
        count, number = columns.shape
        source = _first_equal(columns)
        own = np.flatnonzero(source == np.arange(number))
        later = own[own > 0]
        gaps = columns[:, later] - columns[:, later - 1]
        constants = np.median(gaps, axis=0)
        constants = np.where(constants == np.rint(constants), constants, 0.0).astype(columns.dtype)
        gaps = gaps - constants
        follows = np.count_nonzero(gaps, axis=0) <= FEW * count
        steps, gaps = later[follows], gaps[:, follows]
        few = np.flatnonzero(gaps.any(axis=1))
        if few.size > 2 * FEW * count:  # together, the few are many
            steps, gaps, few, follows = steps[:0], gaps[:, :0], few[:0], np.zeros_like(follows)
        at = np.setdiff1d(own, steps)
        return cls(np.ascontiguousarray(columns[:, at]), at, source, steps, constants[follows], few, gaps[few])

    def product(self, block: Columns) -> Columns:
        """Return block @ columns, [b, m]. block: whole numbers, [b, sentences]."""
        found = np.empty((len(block), self.source.size), dtype=block.dtype)
        found[:, self.at] = block @ self.computed
        if self.steps.size:
            added = block[:, self.few] @ self.rest + block.sum(axis=1, keepdims=True) * self.constants
            # In order: a place may follow from one that itself followed.
            for place, more in zip(self.steps, added.T, strict=True):
                before = place - 1 if self.source[place - 1] == place - 1 else self.source[place - 1]
                found[:, place] = found[:, before] + more
        copied = np.flatnonzero(self.source != np.arange(self.source.size))
        found[:, copied] = found[:, self.source[copied]]
        return found


def _first_equal(columns: Columns) -> Places:
    """Return for each column the place of the first that equals it."""
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(column.tobytes(), place) for place, column in enumerate(columns.T.copy())])
