"""What a verdict shows of a difference: between which of minus the margin, 0 and the margin it lies."""

from math import inf
from typing import NamedTuple

from ablab.judge.document import ClaimLine
from ablab.judge.failures import RANK, SHARE

OPEN = ("inconclusive", "not testable", "provisional")
"""Outcomes that show nothing."""


class Bounds(NamedTuple):
    """The difference, arm less baseline in the measure claimed, lies above `low` and below `high`."""

    low: float
    high: float

    def and_(self, other: "Bounds") -> "Bounds":
        return Bounds(max(self.low, other.low), min(self.high, other.high))


NOTHING = Bounds(-inf, inf)

STRENGTHS = {
    (-1, 1): "within the margin",
    (0, 1): "above 0 by less than the margin",
    (-1, 0): "below 0 by less than the margin",
    (0, inf): "above 0, not shown to exceed the margin",
    (-inf, 0): "below 0, not shown to exceed the margin",
    (1, inf): "above the margin",
    (-inf, -1): "below 0 by more than the margin",
    (-1, inf): "if below 0, then by less than the margin",
    (-inf, 1): "if above 0, then by less than the margin",
}
"""What is shown, with the margin as the unit."""


def shown(claim: ClaimLine) -> Bounds:
    """Return what the verdict shows; of ranks, by which scores would have to be shifted; of shares, the side alone."""
    margin = margin_of(claim)
    if claim.outcome in OPEN:
        return NOTHING
    if claim.outcome == "equivalent" or (claim.expect == "equal" and claim.outcome == "supported"):
        return Bounds(-margin, margin).and_(_different(claim))
    if claim.expect == "not_worse":
        is_above = (claim.outcome == "supported") == is_worse_below(claim)
        edge = -margin if is_worse_below(claim) else margin
        return (Bounds(edge, inf) if is_above else Bounds(-inf, edge)).and_(_different(claim))
    is_large = claim.large or claim.expect == "equal"
    is_small = claim.small or claim.outcome == "real, but smaller than matters"
    low, high = margin if is_large else 0.0, margin if is_small and not is_large else inf
    return Bounds(low, high) if _is_above(claim) else Bounds(-high, -low)


def strength(claim: ClaimLine) -> str | None:
    """Return what is shown relative to the margin, in words; None without a margin or a verdict, and for shares."""
    margin = margin_of(claim)
    if not margin or claim.outcome in OPEN:
        return None
    if claim.title == RANK.title:
        return f"{'also' if claim.large else 'not'} with the margin taken off" if claim.expect != "equal" else None
    low, high = shown(claim)
    return STRENGTHS[low / margin, high / margin]


def margin_of(claim: ClaimLine) -> float:
    """Return the margin at which a claim was judged: 0 for shares of failures, which have none."""
    return 0.0 if claim.title == SHARE.title else claim.margin


def amount(claim: ClaimLine) -> str:
    """Return the margin with its unit, `0.5 BLEU`; ranks have another one."""
    if claim.title != claim.about:
        return f"the margin of {claim.margin:g}"
    singular = claim.margin == 1 and claim.unit.endswith("s") and "/" not in claim.unit
    return f"{claim.margin:g} {claim.unit.removesuffix('s') if singular else claim.unit}".rstrip()


def is_worse_below(claim: ClaimLine) -> bool:
    """Return whether a lower value of the measure claimed is the worse one; so it is where older reports do not say."""
    return claim.higher_is_better is not False


def _different(claim: ClaimLine) -> Bounds:
    if not claim.different:
        return NOTHING
    return Bounds(0.0, inf) if _is_above(claim) else Bounds(-inf, 0.0)


def _is_above(claim: ClaimLine) -> bool:
    """Return on which side of 0 the difference lies, in the measure claimed."""
    if claim.expect in ("greater", "less"):
        return (claim.expect == "greater") == (claim.outcome != "refuted")
    is_more = (claim.difference or 0.0) > 0
    if claim.title == claim.about:
        return is_more
    # Of ranks, the better side won more; of shares of failures, the worse side has more.
    is_better = is_more == (claim.title == RANK.title)
    return is_better == is_worse_below(claim)
