"""What choices after looking do to verdicts where nothing differs, and what a report makes of them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from ablab.statistics.moderated import moderated
from ablab.statistics.verdict import Case, verdicts
from benchmarks.calibration.jobs import FAMILY, SEEDS, Job

WHAT = "a false verdict, where nothing differs"
REPETITIONS = 4000
MARGINS = (0.5, 1.0, 2.0)
"""In sd of a run."""

FALSE = ("supported", "refuted", "real, but smaller than matters")
FEWEST = 3

Once = Callable[[np.random.Generator], dict[str, bool]]


def over_choices() -> Iterator[Job]:
    """Studies that somebody closed, seeds that somebody picked, and files that somebody registered beside others."""
    for seeds in SEEDS[1:]:
        yield Job(
            f"closed at the first interval without 0, of {seeds} seeds", seeds, REPETITIONS, _closed(seeds), WHAT, {}
        )
    for seeds, arms in product(SEEDS, (1, 3, 6)):
        scenario = f"other arms closed at the best moment, {arms} of them"
        yield Job(scenario, seeds, REPETITIONS, _others_closed(seeds, arms), WHAT, {})
    for picked in SEEDS[:2]:
        yield Job(f"the best {picked} of 20 seeds", picked, REPETITIONS, _picked(picked), WHAT, {})
    promised = {"over all claims on the runs": FAMILY}
    yield Job("12 files on the same runs, about 2 arms", 5, REPETITIONS, _two_arms, WHAT, promised)
    yield Job("12 files on the same runs, about 12 arms", 5, REPETITIONS, _twelve_arms, WHAT, promised)


def _closed(seeds: int) -> Once:
    def once(rng: np.random.Generator) -> dict[str, bool]:
        """Only a study that went on to its last seed is confirmatory."""
        arm, baseline = rng.standard_normal((2, seeds))
        looks = range(FEWEST, seeds + 1)
        found = [n for n in looks if moderated(arm[:n], baseline[:n]).p <= 0.05]
        return {"any verdict": bool(found), "confirmatory ones": bool(found) and found[0] == seeds}

    return once


def _others_closed(seeds: int, arms: int) -> Once:
    def once(rng: np.random.Generator) -> dict[str, bool]:
        """The runs of the other arms end one after the other; those of the claim have all ended."""
        arm, baseline, *others = rng.standard_normal((2 + arms, seeds))
        pools = [[*others[:at], others[at][:n]] for at in range(arms) for n in range(2, seeds + 1)]
        p = [moderated(arm, baseline, pool).p for pool in ([], *pools)]
        return {"the best moment": min(p) <= 0.05, "the end": p[-1] <= 0.05}

    return once


def _picked(count: int) -> Once:
    def once(rng: np.random.Generator) -> dict[str, bool]:
        arm, baseline = rng.standard_normal((2, 20))
        best = np.argsort(arm - baseline)[-count:]
        return {"the best seeds": moderated(arm[best], baseline[best]).p <= 0.05}

    return once


def _two_arms(rng: np.random.Generator) -> dict[str, bool]:
    """In both directions, with each of the margins."""
    baseline, *arms = rng.standard_normal((3, 5))
    pairs = list(zip(arms, reversed(arms), strict=True))
    found = [(moderated(arm, baseline, [other]), margin) for arm, other in pairs for margin in MARGINS]
    return _rates([Case(expect, margin, one) for one, margin in found for expect in ("greater", "less")])


def _twelve_arms(rng: np.random.Generator) -> dict[str, bool]:
    baseline, *arms = rng.standard_normal((13, 5))
    return _rates([Case("greater", 0, moderated(arm, baseline)) for arm in arms])


def _rates(cases: Sequence[Case]) -> dict[str, bool]:
    alone = [verdicts([case])[0] for case in cases]
    return {
        "each file alone": any(one.outcome in FALSE for one in alone),
        "over all claims on the runs": any(one.outcome in FALSE for one in verdicts(cases)),
    }
