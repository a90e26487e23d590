"""The report's pictures on paper: forest plots and curves of the arms, as PDF for LaTeX and PNG for Markdown."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ablab.files import replacing
from ablab.fonts import save_figure
from ablab.report.comparisons import KINDS, OF_VOCABULARIES
from ablab.report.document import Document, Series
from ablab.report.figures import COLOURS, MARKERS, MOST_MARKED, Style, styles
from ablab.report.forest import Forest, ForestRow, forests
from ablab.report.format import wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS, MOST_LINES = 40, 16
"""Maximum rows of a forest plot, and lines of a picture of curves. More is unreadable on paper; the page is
interactive.
"""

DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
"""Matplotlib's line styles by Plotly's names."""

POINTS = dict(zip(MARKERS, ("o", "s", "D", "^", "X", "v", "P", "*"), strict=True))
"""Its markers, by Plotly's names."""

LOOK = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # letters that can be selected; some publishers take no others
}

WIDTH = 6.3
"""Inches: the text width of an A4 page."""


class Picture(NamedTuple):
    """A picture on paper. `key`: stem of its file names; `height`: in inches; `arms`: entries of the legend."""

    key: str
    title: str
    caption: str
    height: float
    draw: Callable[["Axes"], None]
    arms: Sequence[str] = ()


def differences(document: Document) -> list[Picture]:
    """Return the forest plots that fit on paper."""
    return [_forest(key, plot) for key, plot in forests(document).items() if len(plot.rows) <= MOST_ROWS]


def _forest(key: str, plot: Forest) -> Picture:
    height = 0.8 + sum(0.14 + 0.16 * max(_lines(_named(row)), _lines(_told(row))) for row in plot.rows)
    return Picture(key, plot.title, plot.caption, height, partial(_draw_forest, plot))


def curves(document: Document) -> list[Picture]:
    """Return the curves of the arms that fit on paper, as on the page."""
    looks = styles(document)
    return [_curves(series, looks) for series in document.series if len(series.lines) <= MOST_LINES]


def drawn(folder: Path) -> list[Path]:
    """List the pictures in the folder that a report may have made."""
    names = ("forest*", "column_figure", "tuning_*", *KINDS, *OF_VOCABULARIES)
    return [path for name in names for kind in ("png", "pdf") for path in folder.glob(f"{name}.{kind}")]


def write_pictures(document: Document, folder: Path) -> None:
    """Write every picture that fits on paper as PNG and PDF. Equal reports give equal files."""
    wanted = [*differences(document), *curves(document)]
    if not wanted:
        return
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    for picture in wanted:
        with rc_context(LOOK):
            figure = Figure(figsize=(WIDTH, picture.height), layout="constrained")
            picture.draw(figure.subplots())
            if len(picture.arms) > 1:
                legend = figure.legend(
                    figure.axes[0].lines, picture.arms, loc="outside lower center", ncols=_columns(picture.arms)
                )
                for text in legend.get_texts():
                    text.set_parse_math(False)
            for kind, of_a_moment in (("png", "Software"), ("pdf", "CreationDate")):
                with replacing(folder / f"{picture.key}.{kind}") as path:
                    save_figure(figure, path, format=kind, dpi=130, metadata={of_a_moment: None})


def _draw_forest(plot: Forest, axes: "Axes") -> None:
    """Draw the first row on top, names on the left and figures on the right."""
    rows = plot.rows
    for place, row in enumerate(reversed(rows)):
        if row.margin:
            axes.barh(place, 2 * row.margin, left=-row.margin, height=0.7, color="0.9", zorder=0)
        if row.estimate is not None:
            axes.hlines(place, row.estimate.span.low, row.estimate.span.high, color=COLOURS[0], linewidth=1.6)
            axes.plot(row.estimate.difference, place, "o", color=COLOURS[0], markersize=5)
        axes.text(1.02, place, _told(row), va="center", fontsize="small", transform=axes.get_yaxis_transform())
    axes.axvline(0.0, color="0.4", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [_named(row) for row in reversed(rows)], parse_math=False)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.locator_params(axis="x", nbins=6)  # figures of four digits would run into each other
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(plot.unit)
    axes.set_title(plot.title)


def _named(row: ForestRow) -> str:
    return wrapped(row.name, 30)


def _told(row: ForestRow) -> str:
    return "\n".join(wrapped(text, 26) for text in (row.figures, row.outcome) if text)


def _lines(text: str) -> int:
    return text.count("\n") + 1


MOST_TICKS = 6
"""Values of a logarithmic axis that are all named: powers of ten would leave most of them out."""


def _curves(series: Series, looks: dict[str, Style]) -> Picture:
    has_bands = any(line.low != line.high for line in series.lines)
    of_seeds = "Mean over seeds" + (", on a band from the lowest seed to the highest." if has_bands else ".")
    arms = [wrapped(line.marked, 40) for line in series.lines]
    height = 2.9 + 0.19 * max(map(_lines, arms)) * -(-len(arms) // _columns(arms))
    caption = series.caption or of_seeds
    return Picture(series.key, series.title, caption, height, partial(_draw_curves, series, looks), arms)


def _draw_curves(series: Series, looks: dict[str, Style], axes: "Axes") -> None:
    for line in series.lines:
        look = looks[line.arm]
        marks: dict[str, Any] = {"marker": POINTS[look.marker], "markersize": 3}
        marks["markevery"] = -(-len(line.x) // MOST_MARKED)
        dashes = DASHES[look.dash] if series.is_joined else ""
        axes.plot(line.x, line.mean, dashes, color=look.colour, linewidth=1.4, **marks)
        if line.low != line.high:
            axes.fill_between(line.x, line.low, line.high, color=look.colour, alpha=0.15, linewidth=0)
    if series.is_log:
        axes.set_xscale("log")
        values = sorted({x for line in series.lines for x in line.x})
        if len(values) <= MOST_TICKS:
            axes.set_xticks(values, [f"{value:g}" for value in values])
            axes.minorticks_off()
    elif all(x == round(x) for line in series.lines for x in line.x):
        axes.locator_params(axis="x", integer=True)
    axes.set_xlabel(series.x)
    axes.set_ylabel(series.y)
    axes.set_title(series.title)
    axes.grid(alpha=0.25)


def _columns(names: Sequence[str]) -> int:
    """Return the number of columns of a legend as wide as the picture."""
    longest = max(len(line) for name in names for line in name.split("\n"))
    return max(1, min(4, 96 // (8 + longest)))
