"""How two verdicts on one claim go together, at usual and at tuned settings, where the truth is the same both ways."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from ablab.judge.tuned import POSITIVE, UNDECIDED, together
from ablab.statistics.moderated import moderated
from ablab.statistics.student import Floats
from ablab.statistics.verdict import Case, Verdict, verdicts
from benchmarks.calibration.jobs import FAMILY, SEEDS, Job

GAINS = (0.0, 1.0, 1.5, 2.0, 3.0)
"""The true gain of each arm over the baseline, in sd of a run, at usual and at tuned settings alike."""

ARMS = (1, 4)

BY_VERDICTS = "one verdict positive, the other not"
BY_INTERVALS = "intervals apart, too"


def over_tuning() -> Iterator[Job]:
    """How often a report says that verdicts differ between usual and tuned settings, where nothing differs."""
    for gain, arms, n in product(GAINS, ARMS, SEEDS):

        def once(rng: np.random.Generator, gain: float = gain, arms: int = arms, n: int = n) -> dict[str, bool]:
            pairs = list(zip(_study(rng, gain, arms, n), _study(rng, gain, arms, n), strict=True))
            words = [together(usual, tuned) for usual, tuned in pairs]
            return {
                BY_VERDICTS: any((one.outcome in POSITIVE) != (other.outcome in POSITIVE) for one, other in pairs),
                BY_INTERVALS: any(word not in (None, "robust", UNDECIDED) for word in words),
            }

        scenario = f"a true gain of {gain:g} sd both ways, {arms} claim{'s' * (arms > 1)}"
        yield Job(scenario, n, 1000, once, "any claim differs with tuning", {BY_INTERVALS: FAMILY})


def _study(rng: np.random.Generator, gain: float, arms: int, n: int) -> list[Verdict]:
    """Return the verdicts of a family whose arms are compared with one baseline, and borrow noise from each other."""
    runs: Floats = rng.normal(0, 1, (arms + 1, n))
    runs[1:] += gain
    others = {number: [arm for at, arm in enumerate(runs) if at not in (0, number)] for number in range(1, arms + 1)}
    return verdicts([Case("greater", 0, moderated(runs[number], runs[0], found)) for number, found in others.items()])
