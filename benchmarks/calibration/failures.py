"""Arms with diverged runs: what ranks of all runs find where shares of failures do not, and how often each errs."""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from ablab.statistics.diverged import DIVERGED, FEWEST_RANKED, Shares, compare_ranks, compare_shares
from ablab.statistics.student import Floats
from ablab.statistics.verdict import Case, Failures, verdicts
from benchmarks.calibration.jobs import Job

SEEDS = (FEWEST_RANKED, 10)

ALONE = (0.0, 0.05)
"""How often a true null may be rejected."""

Draw = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
"""Scores of an arm and its baseline, [seeds] each, in standard deviations of a run."""


def _failing(share: float, shift: float = 0.0, scatter: float = 1.0, baseline: float | None = None) -> Draw:
    """Draw arms that fail with this probability, the baseline with another if one is given."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        found = np.stack([shift + scatter * rng.normal(size=n), rng.normal(size=n)])
        chances = np.array([[share], [share if baseline is None else baseline]])
        arm, usual = np.where(rng.random((2, n)) < chances, DIVERGED, found)
        return arm, usual

    return draw


def _one_diverged(shift: float) -> Draw:
    """Draw arms of which the baseline has one diverged run."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        arm, usual = shift + rng.normal(size=n), rng.normal(size=n)
        usual[0] = DIVERGED
        return arm, usual

    return draw


NULLS: dict[str, tuple[Draw, tuple[float, float] | None]] = {
    "both arms fail 20 % of the time": (_failing(0.2), ALONE),
    "both arms fail 50 % of the time": (_failing(0.5), ALONE),
    "both fail 20 % of the time, one scatters twice as much": (_failing(0.2, scatter=2.0), None),
}

DIFFERENCES: dict[str, Draw] = {
    "one run of the baseline diverged, the arm is 2 sd better": _one_diverged(2.0),
    "one run of the baseline diverged, the arm is 20 sd better": _one_diverged(20.0),
    "both arms fail 20 % of the time, one is 3 sd better": _failing(0.2, 3.0),
    "the baseline fails 80 % of the time, survivors are alike": _failing(0.0, baseline=0.8),
}

MARGIN = 2.0


def over_failures() -> Iterator[Job]:
    """Rates of false verdicts between arms that fail alike, and of verdicts that are true."""
    for n in SEEDS:
        for scenario, (draw, promised) in NULLS.items():
            ways = {"ranks": promised, "shares of failures": promised} if promised else {}
            yield Job(scenario, n, 6000, _judged(draw, n, "inconclusive", but=True), "the verdict is false", ways)
        draw = _failing(0.2, MARGIN)
        scenario = "both arms fail 20 % of the time, and differ by the margin"
        yield Job(scenario, n, 6000, _exceeds(draw, n), "is said to exceed the margin", {"ranks": ALONE})
        for scenario, draw in DIFFERENCES.items():
            yield Job(scenario, n, 2000, _judged(draw, n, "supported"), "supported", {})


def _judged(draw: Draw, n: int, outcome: str, *, but: bool = False) -> Callable[[np.random.Generator], dict[str, bool]]:
    def once(rng: np.random.Generator) -> dict[str, bool]:
        arm, usual = draw(rng, n)
        cases = {"ranks": _by_ranks(arm, usual), "shares of failures": _by_shares(arm, usual)}
        return {way: (verdicts([case])[0].outcome == outcome) != but for way, case in cases.items()}

    return once


def _exceeds(draw: Draw, n: int) -> Callable[[np.random.Generator], dict[str, bool]]:
    return lambda rng: {"ranks": verdicts([_by_ranks(*draw(rng, n), margin=MARGIN)])[0].large}


def _by_ranks(arm: Floats, usual: Floats, margin: float = 0.0) -> Case:
    """Return the claim as the report judges it: by ranks where a run diverged, else by its pairs."""
    if np.isfinite([arm, usual]).all():
        return Case("greater", margin, arm - usual)
    return Case("greater", margin, Failures(compare_ranks(arm, usual, margin), higher_is_better=True))


def _by_shares(arm: Floats, usual: Floats) -> Case:
    """Return the claim as the report judges it with fewer runs."""
    if np.isfinite([arm, usual]).all():
        return Case("greater", 0.0, arm - usual)
    failed = (int((scores == DIVERGED).sum()) for scores in (arm, usual))
    return Case("greater", 0.0, Failures(_shares(*failed, arm.size), higher_is_better=True))


@cache
def _shares(arm: int, usual: int, n: int) -> Shares:
    return compare_shares((arm, n), (usual, n))
