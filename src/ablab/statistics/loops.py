"""Proposals to a loop: looks at one against the noise floor of its baseline, and the confirmation of those kept.

A loop that keeps every change which looks better after one run keeps chance. Here a proposal is compared with runs of
its baseline that are there already, and gets more seeds only while it looks better: it is dropped at a look where the
one-sided p is above the look's level, and kept at the last look where p is at most `keep`. Whatever was kept is then
compared once more on fresh seeds, with one error over all comparisons (Holm 1979). Dropping early cannot raise the
chance of keeping a change without effect above that of the last look alone, so that no boundary is needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from ablab.statistics.interval import NotTestable
from ablab.statistics.multiple import holm
from ablab.statistics.paired import ROUNDING, vary
from ablab.statistics.student import quantile, upper_tail

OF_WHOLE = 3
"""Runs of the whole for each of another arm in a confirmation: all others are compared with its mean."""


@dataclass(frozen=True)
class LookLevels:
    """The rules of looking. `looks`: numbers of seeds; `stop`: of each look but the last, the p above which it drops.

    Raises ValueError for numbers that do not rise, levels outside (0, 1), or not one level for each look but the last.
    """

    looks: tuple[int, ...] = (1, 2, 3, 5)
    stop: tuple[float, ...] = (0.35, 0.20, 0.12)
    keep: float = 0.05

    def __post_init__(self) -> None:
        if not self.looks or self.looks[0] < 1 or any(later <= before for before, later in pairwise(self.looks)):
            raise ValueError(f"looks must be numbers of seeds that rise from 1, got {list(self.looks)}.")
        if len(self.stop) != len(self.looks) - 1:
            raise ValueError(
                f"stop has a level for each look but the last, got {len(self.stop)} for {len(self.looks)}."
            )
        if not all(0 < level < 1 for level in (*self.stop, self.keep)):
            raise ValueError(f"levels lie between 0 and 1, got {[*self.stop, self.keep]}.")


class ProposalLook(NamedTuple):
    """What a look found. `p`: one-sided, for better. `estimate`: proposal less floor, with its 95 % interval.

    `wanted`: seeds of the next look; 0 where the proposal is decided.
    """

    outcome: Literal["go on", "dropped", "kept"]
    p: float
    estimate: float
    low: float
    high: float
    wanted: int


def look(
    proposal: Sequence[float], floor: Sequence[float], levels: LookLevels, *, higher_is_better: bool
) -> ProposalLook:
    """Look at a proposal's scores, one for each seed, beside those of the floor.

    Raises ValueError where there is no look after so many seeds, or the floor has fewer than two.
    """
    if len(proposal) not in levels.looks:
        raise ValueError(f"there are looks after {list(levels.looks)} seeds, got {len(proposal)}.")
    found = difference(proposal, floor, higher_is_better=higher_is_better)
    place = levels.looks.index(len(proposal))
    if place == len(levels.looks) - 1:
        return ProposalLook("kept" if found.p <= levels.keep else "dropped", *found, 0)
    if found.p > levels.stop[place]:
        return ProposalLook("dropped", *found, 0)
    return ProposalLook("go on", *found, levels.looks[place + 1])


class Difference(NamedTuple):
    """A difference of two means. `p`: one-sided, that the first is not better."""

    p: float
    estimate: float
    low: float
    high: float


def difference(one: Sequence[float], other: Sequence[float], *, higher_is_better: bool) -> Difference:
    """Compare two sets of independent runs, by a t test that holds where their noise differs.

    With one run on a side its noise is taken to be that of the other side, as nothing else is known (pooled t). With
    two and more on both, the larger of two p counts: that of the pooled t, and that of Welch 1947. Raises ValueError
    with fewer than two on both sides.
    """
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if max(len(a), len(b)) < 2 or min(len(a), len(b)) < 1:
        raise ValueError(f"a comparison needs two runs on one side and one on the other, got {len(a)} and {len(b)}.")
    estimate = _less(a, b)
    better = estimate if higher_is_better else -estimate
    tests = [_pooled(a, b), *([_welch(a, b)] if min(len(a), len(b)) > 1 else [])]
    p = max(_p(better, error, df) for error, df in tests)
    half = max(quantile(0.975, df) * error for error, df in tests)
    return Difference(p, estimate, estimate - half, estimate + half)


Values = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _less(a: Values, b: Values) -> float:
    """Return the difference of their means; 0 where it is rounding."""
    estimate = float(a.mean() - b.mean())
    return 0.0 if abs(estimate) <= ROUNDING * float(np.abs([*a, *b]).max()) else estimate


def _pooled(a: Values, b: Values) -> tuple[float, float]:
    """Return the standard error of the difference and its degrees of freedom, with one noise for both."""
    df = len(a) + len(b) - 2
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in (a, b))
    return float(np.sqrt(squares / df * (1 / len(a) + 1 / len(b)))), float(df)


def _welch(a: Values, b: Values) -> tuple[float, float]:
    """Return the same with a noise for each."""
    parts = [float(values.var(ddof=1)) / len(values) for values in (a, b)]
    if (whole := sum(parts)) == 0:
        return 0.0, float(len(a) + len(b) - 2)
    df = whole**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (a, b), strict=True))
    return float(np.sqrt(whole)), float(df)


def _p(better: float, error: float, df: float) -> float:
    if error == 0:
        return 0.5 if better == 0 else float(better < 0)
    return float(upper_tail(better / error, df))


class Contrast(NamedTuple):
    """A comparison of a confirmation: with less without. `holm_p`: adjusted for all; `stands`: at most the error."""

    estimate: float
    low: float
    high: float
    p: float
    holm_p: float
    stands: bool


def confirm(
    whole: Sequence[float],
    without: Mapping[str, Sequence[float]],
    first: tuple[str, Sequence[float]],
    *,
    higher_is_better: bool,
    error: float = 0.05,
) -> dict[str, Contrast]:
    """Compare the whole of what was kept with the first baseline and with itself without each change, by name.

    One-sided tests on fresh runs share an error (Holm 1979). The noise of the whole and of the arms without a change is
    taken to be one, as they differ little: with few runs of each this is most of the power. `without`: empty where one
    change was kept, since the whole without it is the first baseline. NotTestable where no arm has noise.
    """
    name, baseline = first
    found = {name: difference(whole, baseline, higher_is_better=higher_is_better)}
    arms = [np.asarray(each, dtype=np.float64) for each in (whole, *without.values())]
    df = float(sum(len(each) - 1 for each in arms))
    if not any(vary(each) for each in (*arms, np.asarray(baseline, dtype=np.float64))):
        raise NotTestable("the runs of each arm have one score, whatever their seed")
    noise = sum(float(((each - each.mean()) ** 2).sum()) for each in arms) / df if df else 0.0
    for change, scores in without.items():
        estimate = _less(arms[0], np.asarray(scores, dtype=np.float64))
        half = float(np.sqrt(noise * (1 / len(whole) + 1 / len(scores))))
        p = _p(estimate if higher_is_better else -estimate, half, df)
        half *= quantile(0.975, df)
        found[change] = Difference(p, estimate, estimate - half, estimate + half)
    adjusted = holm([one.p for one in found.values()])
    return {
        change: Contrast(one.estimate, one.low, one.high, one.p, float(holm_p), bool(holm_p <= error))
        for (change, one), holm_p in zip(found.items(), adjusted, strict=True)
    }
