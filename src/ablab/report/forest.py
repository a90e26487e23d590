"""The forest plot: which differences it shows, with which intervals."""

from typing import NamedTuple

from ablab.report.document import Document, Span
from ablab.report.written import interval_text, signed


class ForestRow(NamedTuple):
    """A difference in the forest plot. `margin`: 0 where none is claimed."""

    name: str
    difference: float
    span: Span
    digits: int
    margin: float = 0.0
    outcome: str = ""

    @property
    def figures(self) -> str:
        """As tables write them."""
        return f"{signed(self.difference, self.digits)} {interval_text(self.span, self.digits)}"


def forest_caption(document: Document) -> str:
    """Which intervals the forest plot shows."""
    if _claimed(document):
        return "Holm intervals of the claims; the grey band is the margin within which a difference does not matter."
    told = "95 % paired t intervals, uncorrected"
    if not document.claims:
        return f"{told}."
    about = any(claim.title == document.title for claim in document.claims)
    return (
        f"{told}; no claim about {document.title} can be tested." if about else f"{told}; the claims are not about it."
    )


def forest_rows(document: Document) -> list[ForestRow]:
    """Of claims about the metric; without any, of all arms."""
    return _claimed(document) or [
        ForestRow(line.arm, line.difference, line.interval, document.digits)
        for line in document.differences
        if line.difference is not None and line.interval is not None
    ]


def _claimed(document: Document) -> list[ForestRow]:
    return [
        ForestRow(
            f"{claim.arm} - {claim.baseline}",
            claim.difference,
            claim.interval,
            claim.digits,
            claim.margin,
            claim.outcome,
        )
        for claim in document.claims
        if claim.difference is not None and claim.interval is not None and claim.title == document.title
    ]
