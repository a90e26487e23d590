"""The forest plot: which differences it shows, with which intervals, and what stands where there is none."""

from collections.abc import Sequence
from typing import NamedTuple

from ablab.report.document import ClaimLine, DifferenceLine, Document, Span
from ablab.report.written import interval_text, signed


class Estimate(NamedTuple):
    """A difference and its interval."""

    difference: float
    span: Span


class ForestRow(NamedTuple):
    """`outcome`: a verdict, or why there is no estimate on this scale. `margin`: 0 where none is claimed."""

    name: str
    estimate: Estimate | None
    digits: int
    outcome: str
    margin: float = 0.0

    @property
    def figures(self) -> str:
        """As tables write them."""
        if self.estimate is None:
            return ""
        return f"{signed(self.estimate.difference, self.digits)} {interval_text(self.estimate.span, self.digits)}"


def forest_rows(document: Document) -> list[ForestRow]:
    """Of claims about the metric where one has an interval, otherwise of all arms; none without any interval."""
    claimed = [_claimed(claim) for claim in _about(document)]
    compared = [_compared(line, document.digits) for line in document.differences]
    return next((rows for rows in (claimed, compared) if any(row.estimate for row in rows)), [])


def forest_caption(document: Document) -> str:
    """Which intervals the forest plot shows."""
    levels = sorted({100 * row.estimate.span.level for row in map(_claimed, _about(document)) if row.estimate})
    if levels:
        said = " to ".join(dict.fromkeys(f"{level:.4g}" for level in (levels[0], levels[-1])))
        return (
            f"Intervals of the claims, each at the level that Holm leaves it ({said} %); the grey band is the margin "
            "within which a difference does not matter."
        )
    told = "95 % paired t intervals, uncorrected"
    if not document.claims:
        return f"{told}."
    if _about(document):
        return f"{told}; no claim about {document.title} has an interval."
    return f"{told}; the claims are not about {document.title}."


def _about(document: Document) -> Sequence[ClaimLine]:
    return [claim for claim in document.claims if claim.metric == document.metric]


def _claimed(claim: ClaimLine) -> ForestRow:
    """Shares of failures are on another scale."""
    name = f"{claim.arm} - {claim.baseline}"
    if claim.title != claim.about:
        return ForestRow(name, None, claim.digits, f"{claim.outcome}, by {claim.title}")
    return ForestRow(name, _estimate(claim), claim.digits, claim.outcome, claim.margin)


def _compared(line: DifferenceLine, digits: int) -> ForestRow:
    return ForestRow(line.arm, _estimate(line), digits, (line.refused or "").partition(" (")[0])


def _estimate(line: ClaimLine | DifferenceLine) -> Estimate | None:
    if line.difference is None or line.interval is None:
        return None
    return Estimate(line.difference, line.interval)
