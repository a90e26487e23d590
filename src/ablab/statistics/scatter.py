"""How much an arm scatters beside the others, and runs that fell far short of their own arm."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ablab.statistics.paired import finite
from ablab.statistics.student import Floats

Scores = TypeVar("Scores", bound=npt.ArrayLike)

WILD = 5.0
"""Ratio of an arm's standard deviation to that of the others from which it says nothing about their noise."""

FEWEST = 4
"""Degrees of freedom of the other arms below which their scatter is too uncertain to compare with."""


def of_the_others(arms: Sequence[npt.ArrayLike]) -> Floats:
    """Return the standard deviation of the other arms beside each arm, [arms]; nan where it is not known.

    arms: [seeds] each. It is the square root of the median of their variances, each divided by the median of chi-square
    over its degrees of freedom: one arm that scatters wildly must not hide another.
    """
    values = [finite(scores, "arms") for scores in arms]
    degrees = np.array([max(scores.size - 1, 0) for scores in values])
    several = degrees > 0
    found, count = np.full(len(values), np.nan), int(several.sum())
    variances = np.array([scores.var(ddof=1) for scores in values if scores.size > 1]) / medians(degrees[several])
    ordered, ranks = np.sort(variances), np.argsort(np.argsort(variances, kind="stable"), kind="stable")
    if count > 1:  # without the arm of rank r, the order has a gap there
        low, high = ((place := (count - 2 + up) // 2) + (ranks <= place) for up in (0, 1))
        found[several] = np.sqrt((ordered[low] + ordered[high]) / 2)
    return np.where((degrees.sum() - degrees >= FEWEST) & (found > 0), found, np.nan)


def ratios(arms: Sequence[npt.ArrayLike]) -> Floats:
    """Return the standard deviation of each arm, [seeds], in that of the others, [arms]; nan where it is not known."""
    values = [finite(scores, "arms") for scores in arms]
    own = np.array([scores.std(ddof=1) if scores.size > 1 else np.nan for scores in values])
    return np.asarray(own / of_the_others(values))


def steady(arms: Mapping[str, Scores]) -> dict[str, Scores]:
    """Return the arms that do not scatter wildly beside the others."""
    wild = ratios(list(arms.values())) > WILD
    return {name: scores for (name, scores), is_wild in zip(arms.items(), wild, strict=True) if not is_wild}


def medians(degrees: npt.NDArray[np.int64]) -> Floats:
    """Return the median of chi-square over its degrees of freedom."""
    from scipy.special import gammaincinv

    return np.asarray(2 * gammaincinv(degrees / 2, 0.5) / degrees)


FAR = 6.0
"""Distance from its arm, in standard deviations, from which a run nearly failed."""


def near_failures(arms: Mapping[str, npt.ArrayLike], *, higher_is_better: bool) -> dict[str, list[int]]:
    """Return the index of the run that nearly failed, by arm; arms without one are left out.

    arms: [seeds] each, three or more. The worst run of an arm nearly failed if it is worse than the next by more than
    FAR standard deviations, both of the other arms and of the arm's other runs: where these scatter as widely, the arm
    does, and no single run failed.
    """
    scores = {name: finite(values, name) for name, values in arms.items()}
    found = {}
    for (name, values), usual in zip(scores.items(), of_the_others(list(scores.values())), strict=True):
        if values.size < 3:
            continue
        worst = int(np.argmin(values) if higher_is_better else np.argmax(values))
        rest = np.delete(values, worst)
        short = float(np.abs(rest - values[worst]).min())
        if short > FAR * usual and short > FAR * float(rest.std(ddof=1)):
            found[name] = [worst]
    return found
