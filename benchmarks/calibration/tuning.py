"""How two verdicts on one claim go together, at usual and at tuned settings, where the truth is known."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from ablab.judge.tuned import POSITIVE, SAME, UNDECIDED, are_shown, together
from ablab.statistics.moderated import Moderated, moderated, moderated_contrast
from ablab.statistics.student import Floats
from ablab.statistics.verdict import Case, Verdict, verdicts
from benchmarks.calibration.jobs import FAMILY, SEEDS, Job

GAINS = (0.0, 1.0, 1.5, 2.0, 3.0)
"""The true gain of each arm over the baseline, in sd of a run, at usual and at tuned settings alike."""

LOST = (3.0, 6.0)
"""Gains at usual settings that tuning takes away."""

ARMS = (1, 4)

BY_VERDICTS = "one verdict positive, the other not"
BY_INTERVALS = "verdicts differ, intervals apart"
BY_TEST = "verdicts differ, and so do the differences"


def over_tuning() -> Iterator[Job]:
    """How often a report says that verdicts differ between usual and tuned settings: where nothing does, and all do."""
    for arms, n in product(ARMS, SEEDS):
        claims = f"{arms} claim{'s' * (arms > 1)}"
        for gain in GAINS:
            scenario, promised = f"a true gain of {gain:g} sd both ways, {claims}", {BY_TEST: FAMILY}
            yield _job(scenario, n, arms, (gain, gain), "any claim differs with tuning", promised)
        for gain in LOST:
            scenario = f"a true gain of {gain:g} sd that tuning takes away, {claims}"
            yield _job(scenario, n, arms, (gain, 0.0), "the first claim differs with tuning", {})


def _job(
    scenario: str, n: int, arms: int, gains: tuple[float, float], what: str, promised: dict[str, tuple[float, float]]
) -> Job:
    def once(rng: np.random.Generator) -> dict[str, bool]:
        usual, tuned = (rng.normal(0, 1, (arms + 1, n)) + gain * (np.arange(arms + 1) > 0)[:, None] for gain in gains)
        pairs = list(zip(_verdicts(usual), _verdicts(tuned), strict=True))
        shown = are_shown([_change(usual, tuned, arm) for arm in range(1, arms + 1)])
        said = {
            BY_VERDICTS: [(one.outcome in POSITIVE) != (other.outcome in POSITIVE) for one, other in pairs],
            BY_INTERVALS: [_differ(*pair, _are_apart(*pair)) for pair in pairs],
            BY_TEST: [_differ(*pair, is_shown) for pair, is_shown in zip(pairs, shown, strict=True)],
        }
        return {way: any(found) if what.startswith("any") else found[0] for way, found in said.items()}

    return Job(scenario, n, 1000, once, what, promised)


def _differ(usual: Verdict, tuned: Verdict, is_shown: bool) -> bool:
    return together(usual.outcome, tuned.outcome, is_shown) not in (None, SAME, UNDECIDED)


def _are_apart(one: Verdict, other: Verdict) -> bool:
    """Return whether two intervals have no value in common: the rule that the test took the place of."""
    assert one.interval is not None
    assert other.interval is not None
    return one.interval.high < other.interval.low or other.interval.high < one.interval.low


def _verdicts(runs: Floats) -> list[Verdict]:
    """Return the verdicts of a family whose arms are compared with one baseline, and borrow noise from each other."""
    arms = range(1, len(runs))
    return verdicts([Case("greater", 0, moderated(runs[arm], runs[0], _but(runs, 0, arm))) for arm in arms])


def _change(usual: Floats, tuned: Floats, arm: int) -> Moderated:
    others = [*_but(usual, 0, arm), *_but(tuned, 0, arm)]
    return moderated_contrast([tuned[arm], tuned[0], usual[arm], usual[0]], [1, -1, -1, 1], others)


def _but(runs: Floats, *left_out: int) -> list[Floats]:
    return [run for number, run in enumerate(runs) if number not in left_out]
