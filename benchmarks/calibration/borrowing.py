"""Noise that differs from arm to arm, in size or in shape: what borrowing from the other arms finds, and where it errs.

Studies of five arms and four claims, each against the first arm. Every rejection of a true null is false.
"""

from collections.abc import Callable, Iterator
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from ablab.statistics import moderated as borrowing
from ablab.statistics.moderated import moderated, near_failures
from ablab.statistics.paired import of_differences
from ablab.statistics.verdict import Case, verdicts
from benchmarks.calibration.jobs import SEEDS, Job

Arms = npt.NDArray[np.float64]
"""Scores, [5, seeds]."""

Draw = Callable[[np.random.Generator, int], Arms]

ARMS = 5
EFFECT = 1.5
"""In standard deviations of a run."""

ALIKE = (0.0, 0.055)
"""How often a true null may be rejected where all arms scatter alike."""


def _sizes(*factors: float) -> Draw:
    return lambda rng, n: rng.normal(size=(ARMS, n)) * np.array([*factors, *[1.0] * (ARMS - len(factors))])[:, None]


def _correlated(rng: np.random.Generator, n: int) -> Arms:
    return 0.7**0.5 * rng.normal(size=(ARMS, n)) + 0.3**0.5 * rng.normal(size=(1, n))


def _nearly_failing(rng: np.random.Generator, n: int) -> Arms:
    """One run of the baseline in five falls 18 standard deviations short; the means are equal all the same."""
    arms = rng.normal(size=(ARMS, n))
    arms[0] += 3.6 - 18 * (rng.random(n) < 0.2)
    return arms


def _exponential(rng: np.random.Generator, n: int) -> Arms:
    arms = rng.normal(size=(ARMS, n))
    arms[0] = 1 - rng.exponential(size=n)
    return arms


def _all_skewed(rng: np.random.Generator, n: int) -> Arms:
    return np.asarray(1 - rng.exponential(size=(ARMS, n)))


SIZES: dict[str, Draw] = {
    "arms scatter alike": _sizes(),
    "seeds correlate by 0.3 across arms": _correlated,
    "the baseline scatters 1.5 times as much": _sizes(1.5),
    "the baseline scatters twice as much": _sizes(2),
    "the arm scatters twice as much": _sizes(1, 2),
    "the arm scatters three times as much": _sizes(1, 3),
    "the baseline scatters half as much": _sizes(0.5),
    "scatter grows from arm to arm, 1 to 2": _sizes(1, 1.25, 1.5, 1.75, 2),
}

SHAPES: dict[str, Draw] = {
    "all arms skewed alike (exponential)": _all_skewed,
    "exponential noise in the baseline alone": _exponential,
    "one run of the baseline in five nearly fails": _nearly_failing,
}


def _rejects(arms: Arms) -> dict[str, bool]:
    """The first claim alone, by each method."""
    found = {
        "paired t": of_differences(arms[1] - arms[0]).p <= 0.05,
        "moderated t": moderated(arms[1], arms[0], list(arms[2:])).p <= 0.05,
    }
    with patch.object(borrowing, "PRIOR", 4.0):
        return found | {"moderated t, prior of 4": moderated(arms[1], arms[0], list(arms[2:])).p <= 0.05}


def _cases(arms: Arms, *, borrows: bool) -> list[Case]:
    return [
        Case(
            "greater",
            0.0,
            moderated(arm, arms[0], [other for other in arms[1:] if other is not arm]) if borrows else arm - arms[0],
        )
        for arm in arms[1:]
    ]


def _studies(arms: Arms) -> dict[str, bool]:
    """Whether any of the four verdicts is false, where no arm differs."""
    return {
        name: any(verdict.outcome != "inconclusive" for verdict in verdicts(_cases(arms, borrows=borrows)))
        for name, borrows in (("verdicts, paired", False), ("verdicts, moderated", True))
    }


def _unmarked(arms: Arms) -> dict[str, bool]:
    """Whether any verdict is false, and whether one is that stands beside no run that nearly failed."""
    failing = near_failures({str(number): arm for number, arm in enumerate(arms)}, higher_is_better=True)
    others = [arm for number, arm in enumerate(arms) if str(number) not in failing]
    cases = [Case("greater", 0.0, moderated(arm, arms[0], [o for o in others if o is not arm])) for arm in arms[1:]]
    judged = zip(range(1, ARMS), verdicts(cases), strict=True)
    false = [number for number, verdict in judged if verdict.outcome != "inconclusive"]
    plain = [number for number in false if not failing.keys() & {"0", str(number)}]
    return {"false": bool(false), "false and unmarked": bool(plain)}


def over_noise() -> Iterator[Job]:
    """Rates of a claim alone, of whole studies, and of what the marks of a verdict catch."""
    for scenario, draw in {**SIZES, **SHAPES}.items():
        for n in SEEDS:
            equal = scenario == "arms scatter alike"
            promised = {"paired t": ALIKE, "moderated t": ALIKE} if equal else {}
            yield _job(scenario, n, 10_000, draw, _rejects, "rejects a true null", promised)
            promised = {"verdicts, moderated": (0.0, 0.05)} if equal else {}
            yield _job(scenario, n, 2000, draw, _studies, "any verdict of four is false", promised)
    for scenario, draw in SHAPES.items():
        for n in SEEDS:
            yield _job(scenario, n, 2000, draw, _unmarked, "any verdict of four, moderated", {})
    for n in SEEDS:

        def planted(rng: np.random.Generator, n: int) -> Arms:
            return rng.normal(size=(ARMS, n)) + np.array([0.0, *[EFFECT] * (ARMS - 1)])[:, None]

        yield _job("arms scatter alike", n, 10_000, planted, _rejects, f"finds {EFFECT} sd of a run", {})


def _job(
    scenario: str,
    n: int,
    repetitions: int,
    draw: Draw,
    judge: Callable[[Arms], dict[str, bool]],
    what: str,
    promised: dict[str, tuple[float, float]],
) -> Job:
    return Job(scenario, n, repetitions, lambda rng: judge(draw(rng, n)), what, promised)
