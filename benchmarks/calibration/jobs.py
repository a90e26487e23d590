"""What is simulated how often, and the rates that come of it."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.calibration.rows import Row

SEED = 2016
SEEDS = (3, 5, 10)
RESAMPLES = 300
"""Enough for a variance: its error of 8 % is small beside that of a variance over 10 seeds, 47 %."""

NULL = (0.03, 0.07)
"""What a test at 5 % may reject of true nulls."""

FAMILY = (0.0, 0.05)
"""How often any verdict of a study may be false."""


@dataclass(frozen=True)
class Job:
    """A simulation: what it is called, how often it is done in full, and the outcomes of one repetition by method."""

    scenario: str
    n: int
    repetitions: int
    once: Callable[[np.random.Generator], dict[str, bool]]
    what: str
    promised: dict[str, tuple[float, float]]

    def rows(self, share: float) -> Iterator[Row]:
        """One for each method, from this share of the repetitions."""
        # A stream of its own: adding a job changes no other.
        rng = np.random.default_rng([SEED, self.n, zlib.crc32(f"{self.scenario}, {self.what}".encode())])
        repetitions = max(3, round(self.repetitions * share))
        outcomes = [self.once(rng) for _ in range(repetitions)]
        for method in outcomes[0]:
            rate = float(np.mean([outcome[method] for outcome in outcomes]))
            yield Row(method, self.scenario, self.n, self.what, rate, repetitions, self.promised.get(method))
