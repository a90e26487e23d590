"""Rows of the forest plots, of a page's width and of a column's: differences, their intervals, and what stands for a
missing one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ablab.files import COLOURS
from ablab.judge.document import Document
from ablab.judge.lines import ClaimLine, DifferenceLine, SeedDifference, Span, digits_shown, interval_text
from ablab.report.figures import ASIDE, styles
from ablab.report.names import pair_of
from ablab.report.tables import differences_by_effect, with_unit
from ablab.study.looks import Style
from ablab.text import signed

COLUMN_ROWS = 14
"""Rows that fit in a column of a paper with a caption."""


class Estimate(NamedTuple):
    """A difference and its interval."""

    difference: float
    span: Span


class ForestRow(NamedTuple):
    """A row of a forest plot.

    `outcome`: a verdict, or why there is no estimate on this scale. `margin`: 0 where none is claimed. `published`:
    ranges. `is_judged`: the interval is the one at which a claim is judged; while its runs are awaited, it is a plain
    one. `colour`: that of its arm.
    """

    name: str
    difference: float | None
    interval: Span | None
    digits: int
    outcome: str
    margin: float = 0.0
    per_seed: Sequence[SeedDifference] = ()
    published: Sequence[tuple[float, float]] = ()
    is_judged: bool = False
    is_exploratory: bool = False
    colour: str = COLOURS[0]

    @property
    def estimate(self) -> Estimate | None:
        """The difference with its interval; None where one of them is missing."""
        if self.difference is None or self.interval is None:
            return None
        return Estimate(self.difference, self.interval)

    @property
    def figures(self) -> str:
        """The estimate as tables format it."""
        if self.estimate is None:
            return ""
        digits = digits_shown(*self.estimate, self.digits)
        return f"{signed(self.estimate.difference, digits)} {interval_text(self.estimate.span, digits)}"


class Forest(NamedTuple):
    """The forest plot of one measure. `about`: the measure; `unit`: of the axis."""

    about: str
    unit: str
    caption: str
    rows: Sequence[ForestRow]

    @property
    def title(self) -> str:
        return f"Differences in {self.about}"


def forests(document: Document) -> dict[str, Forest]:
    """Return a forest plot for each measure that claims are about, the report's metric first, by the keys of their
    files.

    Measures without any interval are left out. Where no claim about the metric has an interval, a plot of all arms by
    that metric follows those of the claims.
    """
    about: dict[str, list[ClaimLine]] = {}
    for claim in sorted(document.claims, key=lambda claim: claim.metric != document.metric):
        about.setdefault(claim.about, []).append(claim)
    looks = styles(document)
    shown = [plot for claims in about.values() if (plot := _of_claims(claims, looks)) is not None]
    if document.title not in {plot.about for plot in shown} and (plot := _of_arms(document)) is not None:
        shown.append(plot)
    return {"forest" if number == 1 else f"forest_{number}": plot for number, plot in enumerate(shown, 1)}


def _of_claims(claims: Sequence[ClaimLine], looks: Mapping[str, Style]) -> Forest | None:
    rows = [_claimed(claim, looks) for claim in claims]
    levels = sorted(100 * row.estimate.span.level for row in rows if row.estimate)
    if not levels:
        return None
    levels_text = " to ".join(dict.fromkeys(f"{level:.4g}" for level in (levels[0], levels[-1])))
    caption = f"Intervals of the claims, each at the level at which it is judged ({levels_text} %)"
    if any(claim.outcome == "provisional" and claim.followed is None for claim in claims):
        caption = "95 % intervals of the claims so far, without verdicts: the study has not ended"
    band = (
        "; the grey band is the margin within which a difference does not matter" if any(r.margin for r in rows) else ""
    )
    seeds = "; circles: seeds" if any(row.per_seed for row in rows) else ""
    aside = "; open marks: exploratory" if any(row.is_exploratory for row in rows) else ""
    unit = next(claim.unit for claim in claims if claim.title == claim.about)
    return Forest(claims[0].about, unit, f"{caption}{band}{seeds}{aside}.", rows)


def _of_arms(document: Document) -> Forest | None:
    looks = styles(document)
    rows = [_arm(line, document, looks, (line.refused or "").partition(" (")[0]) for line in document.differences]
    if not any(row.estimate for row in rows):
        return None
    tests = dict.fromkeys((line.test or "paired t").partition(",")[0] for line in document.differences if line.interval)
    caption = f"95 % {' and '.join(tests)} intervals, uncorrected"
    if any(claim.metric == document.metric for claim in document.claims):
        caption += f"; no claim about {document.title} has an interval"
    elif document.claims:
        caption += f"; the claims are not about {document.title}"
    return Forest(document.title, document.unit, f"{caption}.", rows)


def _claimed(claim: ClaimLine, looks: Mapping[str, Style]) -> ForestRow:
    """Return the row of a claim; without an estimate where it was judged by shares of failures or ranks, which have
    another scale.
    """
    if claim.title != claim.about:
        return ForestRow(_name(claim), None, None, claim.digits, f"{claim.verdict}, by {claim.title}")
    return _claim(claim, looks, claim.verdict)


MARKS: tuple[tuple[str, Callable[[ForestRow], bool]], ...] = (
    ("diamonds: differences", lambda row: not row.interval),
    ("circles: seeds", lambda row: bool(row.per_seed)),
    ("diamonds: means, with the intervals at which claims are judged", lambda row: row.is_judged),
    ("diamonds: means, with 95 % intervals", lambda row: bool(row.interval and not row.is_judged)),
    ("grey: margins, within which differences do not matter", lambda row: bool(row.margin)),
    ("triangles: published", lambda row: bool(row.published)),
    ("open marks: exploratory", lambda row: row.is_exploratory),
)
"""What the caption of a column's figure says of the marks, where they are drawn."""


def column_panels(document: Document) -> dict[str, list[ForestRow]]:
    """Return the rows of a column's figure by measure, the report's metric first: those of all claims that can be
    drawn, else those of all arms; as many as fit.
    """
    claims = [claim for claim in document.claims if claim.difference is not None and claim.title == claim.about]
    claims.sort(key=lambda claim: claim.metric != document.metric)
    looks, panels = styles(document), dict[str, list[ForestRow]]()
    for claim in claims[:COLUMN_ROWS]:
        panels.setdefault(with_unit(claim.about, claim.unit), []).append(_claim(claim, looks, claim.marked))
    lines = [line for line in differences_by_effect(document) if line.difference is not None]
    return panels or {
        with_unit(document.title, document.unit): [
            _arm(one, document, looks, "")._replace(per_seed=one.per_seed) for one in lines[:COLUMN_ROWS]
        ]
    }


def _colour(name: str, looks: Mapping[str, Style], exploratory: str | None = None) -> str:
    """Return the colour of an arm, unless what is said of it is exploratory. A sum of arms has that of the first."""
    return ASIDE if exploratory is not None else looks[name].colour if name in looks else COLOURS[0]


def _name(claim: ClaimLine) -> str:
    arm, baseline, both = claim.pair or pair_of(claim.arm, claim.baseline)
    return f"{arm} \N{MINUS SIGN} {baseline}" + (f", {both}" if both else "")


def _arm(line: DifferenceLine, document: Document, looks: Mapping[str, Style], outcome: str) -> ForestRow:
    colour = _colour(line.arm, looks)
    return ForestRow(line.arm, line.difference, line.interval, document.digits, outcome, colour=colour)


def _claim(claim: ClaimLine, looks: Mapping[str, Style], outcome: str) -> ForestRow:
    return ForestRow(
        _name(claim),
        claim.difference,
        claim.interval,
        claim.digits,
        outcome,
        claim.margin,
        claim.per_seed,
        published_differences(claim),
        is_judged=claim.interval is not None and (claim.outcome != "provisional" or claim.followed is not None),
        is_exploratory=claim.exploratory is not None,
        colour=_colour(claim.arm, looks, claim.exploratory),
    )


SIGNED = r"[+\-\N{MINUS SIGN}]\d+(?:,\d{3})*(?:\.\d+)?"
FOLLOWS = r"(?=\s*(?:$|[,;.()]|(?:to|on|for|in|with|at|over|after|by)\b|{unit}))"


def published_differences(claim: ClaimLine) -> list[tuple[float, float]]:
    """Return the published differences as ranges (low, high) in the unit of the claim, low = high for one number.

    `-0.2 to +1.53 BLEU` is one range; `+1.53 BLEU for gl-en, +0.75 for sk-en` are two numbers. Only numbers with a
    sign are differences, and only where one of them bears the unit: `25.7 against 25.8 BLEU` gives none, nor does
    `+0.6 on MNLI` for a claim about BLEU.
    """
    text = claim.published or ""
    if claim.title != claim.about or not claim.unit:
        return []
    unit = re.escape(claim.unit)
    if not re.search(rf"(?<!\w){SIGNED}\s*{unit}(?!\w)", text):
        return []
    follows = FOLLOWS.replace("{unit}", unit)
    found = re.finditer(rf"(?<![\w.])({SIGNED})(?:\s+to\s+({SIGNED}))?{follows}", text)
    ranges = [sorted(_number(part) for part in (match[1], match[2] or match[1])) for match in found]
    return [(low, high) for low, high in ranges]


def _number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-").replace(",", ""))


def wrapped(name: str, width: int) -> str:
    """Break a name into lines of at most `width` characters, after commas and spaces where possible."""
    lines = [""]
    for piece in re.findall(rf"[^, ]{{0,{width - 1}}}[, ]|[^, ]{{1,{width}}}", name):
        if len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)
