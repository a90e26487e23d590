"""The figure for one column of a paper: every seed's difference, mean, interval, margin and published value."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ablab.files import replacing
from ablab.fonts import save_figure
from ablab.report.document import ClaimLine, DifferenceLine, Document, SeedDifference, Span
from ablab.report.figures import COLOURS
from ablab.report.format import wrapped
from ablab.report.order import differences_by_effect
from ablab.report.published import published_differences
from ablab.report.spoken import spoken, spoken_pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 3.03
"""Inches: a column of ACL's style."""

MOST_ROWS = 14
"""Rows that fit in a column with a caption."""

ROW, LINE = 0.34, 0.13
"""Inches: height of a row, and of a line of its name."""

LOOK = {
    "font.size": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "pdf.fonttype": 42,
}


class ColumnRow(NamedTuple):
    """A row of the figure. `published`: ranges; `margin`: 0 where none is claimed.

    `is_judged`: the interval is the one at which a claim is judged; while its runs are awaited, it is a plain one.
    """

    name: str
    outcome: str
    difference: float
    interval: Span | None
    per_seed: Sequence[SeedDifference]
    margin: float = 0.0
    published: Sequence[tuple[float, float]] = ()
    is_judged: bool = False

    @property
    def label(self) -> str:
        """The name in lines that leave space for the outcome."""
        return wrapped(self.name, 38 if self.outcome else 56)


MARKS: tuple[tuple[str, Callable[[ColumnRow], bool]], ...] = (
    ("diamonds: differences", lambda row: not row.interval),
    ("circles: seeds", lambda row: bool(row.per_seed)),
    ("diamonds: means, with the intervals at which claims are judged", lambda row: row.is_judged),
    ("diamonds: means, with 95 % intervals", lambda row: bool(row.interval and not row.is_judged)),
    ("grey: margins, within which differences do not matter", lambda row: bool(row.margin)),
    ("triangles: published", lambda row: bool(row.published)),
)
"""What the caption says of the marks, where they are drawn."""


def column_rows(document: Document) -> tuple[str, list[ColumnRow]]:
    """Return the measure and the rows: of the claims about the first measure that can be drawn, else of all arms."""
    claims = [claim for claim in document.claims if claim.difference is not None and claim.title == claim.about]
    claims.sort(key=lambda claim: claim.metric != document.metric)
    if claims:
        about = claims[0].about
        return _in(about, claims[0].unit), [_claim(claim) for claim in claims if claim.about == about]
    lines = [line for line in differences_by_effect(document) if line.difference is not None]
    return _in(document.title, document.unit), [_line(line) for line in lines]


def _in(about: str, unit: str) -> str:
    return about if not unit or about.endswith(unit) else f"{about} ({unit})"


def _claim(claim: ClaimLine) -> ColumnRow:
    arm, baseline, both = spoken_pair(claim.arm, claim.baseline)
    name = f"{arm} \N{MINUS SIGN} {baseline}" + (f", {both}" if both else "")
    assert claim.difference is not None
    published = published_differences(claim)
    is_judged = claim.interval is not None and (claim.outcome != "provisional" or claim.followed is not None)
    return ColumnRow(
        name, claim.outcome, claim.difference, claim.interval, claim.per_seed, claim.margin, published, is_judged
    )


def _line(line: DifferenceLine) -> ColumnRow:
    assert line.difference is not None
    return ColumnRow(spoken(line.arm), "", line.difference, line.interval, line.per_seed)


def write_column_picture(document: Document, folder: Path) -> None:
    """Write `column_figure.pdf`, if there is anything to draw. Equal reports give equal files."""
    about, rows = column_rows(document)
    rows = rows[:MOST_ROWS]
    if not rows:
        return
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    heights = [ROW + LINE * (row.label.count("\n") + 1) for row in rows]
    with rc_context(LOOK):
        figure = Figure(figsize=(WIDTH, 0.45 + sum(heights)))
        axes = figure.add_axes((0.02, 0.36 / (0.45 + sum(heights)), 0.96, sum(heights) / (0.45 + sum(heights))))
        _draw(axes, rows, heights)
        axes.set_xlabel(f"Difference in {about}", labelpad=2)
        with replacing(folder / "column_figure.pdf") as path:
            save_figure(figure, path, format="pdf", metadata={"CreationDate": None})


def _draw(axes: "Axes", rows: Sequence[ColumnRow], heights: Sequence[float]) -> None:
    """Draw each row below its name, from the top; heights are in inches."""
    top = sum(heights)
    axes.set_ylim(0, top)
    for row, height in zip(rows, heights, strict=True):
        middle = top - height + ROW / 2
        across: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "top", "zorder": 5}
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85}
        axes.text(0.0, top - 0.03, row.label, ha="left", parse_math=False, bbox=box, **across)
        axes.text(1.0, top - 0.03, row.outcome, ha="right", style="italic", bbox=box, **across)
        _draw_row(axes, row, middle)
        top -= height
    axes.set_yticks([])
    axes.locator_params(axis="x", nbins=6)
    axes.tick_params(axis="x", length=2, width=0.6, pad=2)


def _draw_row(axes: "Axes", row: ColumnRow, middle: float) -> None:
    seeds, mean = middle + 0.06, middle - 0.06
    axes.vlines(0.0, middle - ROW / 2, middle + ROW / 2, color="0.3", linewidth=0.8, zorder=1)
    if row.margin:
        axes.barh(middle, 2 * row.margin, left=-row.margin, height=ROW - 0.06, color="0.9", zorder=0)
    if row.interval is not None:
        axes.hlines(mean, row.interval.low, row.interval.high, color=COLOURS[0], linewidth=1.2, zorder=3)
        ends = [row.interval.low, row.interval.high]
        axes.plot(ends, [mean, mean], "|", color=COLOURS[0], markersize=4, markeredgewidth=1.0, zorder=3)
    axes.plot(row.difference, mean, "D", color=COLOURS[0], markersize=3.5, zorder=4)
    values = [one.difference for one in row.per_seed]
    axes.plot(values, [seeds] * len(values), "o", color="black", markerfacecolor="white", markersize=3, zorder=4)
    for low, high in row.published:
        axes.plot([low, high], [seeds + 0.07] * 2, ":v", color=COLOURS[1], markersize=3.5, linewidth=0.9, zorder=4)
