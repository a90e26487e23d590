"""Signs in the runs of a claim that the conditions of its test do not hold, or that another test would see more."""

from collections.abc import Iterator, Mapping, Sequence

from ablab.judge.document import Sign
from ablab.statistics import student
from ablab.statistics.conditions import follow_the_order, in_two_groups, shared
from ablab.statistics.moderated import Moderated
from ablab.statistics.scatter import ratios

WIDE = 3.0
"""Ratio of an arm's standard deviation to that of the others from which a reader should know of it."""


def conditions(
    compared: Mapping[str, Sequence[float]], others: Sequence[Sequence[float]], decisive: object, level: float
) -> Iterator[Sign]:
    """Yield what the scores of a claim's arms show. compared: by arm, under the seeds that all of them have.

    others: the scores of arms that lend their noise, in the order of their seeds. level: of the claim's interval.
    """
    everyone = [*compared.values(), *others]
    for name, ratio in zip(compared, ratios(everyone), strict=False):
        if ratio > WIDE:
            yield Sign(kind="wide", arm=name, figure=float(ratio))
    if in_two_groups(everyone):
        yield Sign(kind="groups")
    seeds = len(next(iter(compared.values())))
    if follow_the_order([scores for scores in everyone if len(scores) == seeds]):
        yield Sign(kind="order")
    if len(compared) == 2:
        arm, baseline = compared.values()
        alike = [arm, *(scores for scores in others if len(scores) == seeds)]
        yield from _of_seeds(baseline, alike, decisive, level)


def _of_seeds(
    baseline: Sequence[float], arms: Sequence[Sequence[float]], decisive: object, level: float
) -> Iterator[Sign]:
    if not isinstance(decisive, Moderated) or (found := shared(baseline, arms)) is None or not found.is_shown:
        return
    if found.correlation < 0:
        yield Sign(kind="opposed", figure=found.correlation)
    elif _pairs_are_narrower(found.correlation, decisive, level):
        yield Sign(kind="together", figure=found.correlation)


def _pairs_are_narrower(correlation: float, decisive: Moderated, level: float) -> bool:
    """Return whether the paired test's interval is narrower on average where runs with one seed correlate so."""
    paired, moderated = (student.quantile((1 + level) / 2, df) for df in (decisive.n - 1, decisive.df))
    return bool(paired * (1 - correlation) ** 0.5 < moderated)
