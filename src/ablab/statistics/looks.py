"""Looks after every seed: boundaries that hold the error over all looks, and the t test at each of them.

A study that adds seeds until it is settled looks at its claims again and again. At 5 % for each look, from 3 to 10
seeds, one true null in six would be rejected at some look. Here the test at n of at most N seeds rejects where its
one-sided p is at most c n / N (a boundary of the family of Wang and Tsiatis 1987, on the scale of p). The factor c
makes the chance of any false rejection over all looks equal to the wanted error. It comes from simulated paths of the
t statistic, whose distribution without a difference does not depend on the size of the noise.
"""

import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ablab.statistics.student import Floats

TABLE = Path(__file__).parent / "boundaries.json"
"""Made by `python -m benchmarks.calibration.boundaries`."""

FEWEST = 3
"""Seeds at the earliest look."""

LATEST_FIRST = 10
MOST = 40
"""Largest numbers of seeds at the first and at the last look in the table."""


@dataclass(frozen=True)
class Looks:
    """A look after each seed from the `first` to the `last`. Raises ValueError for numbers that the table lacks."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not FEWEST <= self.first <= LATEST_FIRST or not self.first < self.last <= MOST:
            raise ValueError(
                f"looks are from {FEWEST} to {LATEST_FIRST} seeds on, to at most {MOST} and more than the first, "
                f"got {self.first} to {self.last}."
            )

    def level(self, alpha: float, n: int) -> float:
        """Return the one-sided p at or below which the test of n seeds rejects; alpha: one-sided, over all looks."""
        if not self.first <= n <= self.last:
            raise ValueError(f"there is a look after {self.first} to {self.last} seeds, got {n}.")
        return min(0.5, self._factor(alpha) * n / self.last)

    def adjusted(self, p: float, n: int) -> float:
        """Return the one-sided alpha, over all looks, at which the test of n seeds just rejects with this one-sided p.

        Outside the table, on the straight line through its end: chances that small go together like that. At most 1.
        """
        alphas, thresholds = self._logs
        wanted = float(np.log(max(p, 1e-300) * self.last / n))
        if wanted < thresholds[0]:
            return float(np.exp(alphas[0] + wanted - thresholds[0]))
        if wanted > thresholds[-1]:
            return min(1.0, float(np.exp(alphas[-1] + wanted - thresholds[-1])))
        return float(np.exp(np.interp(wanted, thresholds, alphas)))

    def _factor(self, alpha: float) -> float:
        alphas, thresholds = self._logs
        wanted = np.log(alpha)
        if not alphas[0] - 1e-9 <= wanted <= alphas[-1] + 1e-9:
            raise ValueError(
                f"alpha must be from {np.exp(alphas[0]):.2g} to {np.exp(alphas[-1]):.2g} on each side, got {alpha}."
            )
        return float(np.exp(np.interp(wanted, alphas, thresholds)))

    @cached_property
    def _logs(self) -> tuple[Floats, Floats]:
        table = _table()
        return np.log(table["alphas"]), np.log(table["thresholds"][str(self.first)][str(self.last)])


@cache
def _table() -> Any:
    """Return `alphas`, and under the numbers of seeds at the first and the last look the `thresholds` of each."""
    return json.loads(TABLE.read_text(encoding="utf-8"))
