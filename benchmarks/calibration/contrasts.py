"""Interactions: how often a true null is rejected where all cells scatter alike, and where one does not."""

from collections.abc import Iterator

import numpy as np

from ablab.statistics.moderated import moderated_contrast
from ablab.statistics.paired import of_differences
from benchmarks.calibration.jobs import SEEDS, Job
from benchmarks.calibration.worlds import EFFECT

ALIKE = (0.0, 0.055)
"""How often a true null may be rejected where all cells scatter alike."""

CELLS = 4
INTERACTION = (1.0, -1.0, -1.0, 1.0)
TESTS = ("interaction, paired t", "interaction, moderated t")

SIZES = {"noise alike": 1.0, "one cell twice as noisy": 2.0, "one cell three times as noisy": 3.0}
"""Standard deviation of the last cell, relative to the others."""


def over_interactions() -> Iterator[Job]:
    """Two by two cells, alone and beside four other arms; with an interaction of 3 sd, the power."""
    for others in (0, 4):
        for name, size in SIZES.items():
            for n in SEEDS:
                yield _job(f"interaction, {others} other arms, {name}", n, others, size, 0.0)
        for n in SEEDS:
            scenario = f"interaction of {2 * EFFECT:g} sd, {others} other arms"
            yield _job(scenario, n, others, 1.0, 2 * EFFECT)


def _job(scenario: str, n: int, others: int, size: float, effect: float) -> Job:
    def once(rng: np.random.Generator) -> dict[str, bool]:
        arms = rng.normal(0, 1, (CELLS + others, n))
        arms[CELLS - 1] = size * arms[CELLS - 1] + effect
        found = of_differences(INTERACTION @ arms[:CELLS])
        borrowing = moderated_contrast(list(arms[:CELLS]), INTERACTION, list(arms[CELLS:]))
        return dict(zip(TESTS, (found.p <= 0.05, borrowing.p <= 0.05), strict=True))

    promised = dict.fromkeys(TESTS, ALIKE) if size == 1.0 and not effect else {}
    return Job(scenario, n, 4000, once, "found" if effect else "a null is rejected", promised)
