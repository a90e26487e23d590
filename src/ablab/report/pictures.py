"""The report's curves of the arms, and all its pictures on paper, as PDF for LaTeX and PNG for Markdown."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ablab.errors import is_installed
from ablab.files import COLOURS, save_figure
from ablab.files.disk import replacing
from ablab.judge.document import Document, Series
from ablab.report.figures import MOST_MARKED, styles
from ablab.report.forest import Forest, ForestRow, column_panels, forests, wrapped
from ablab.study.looks import Style
from ablab.tasks.registry import known_tasks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS, MOST_LINES = 40, 16
"""Maximum rows of a forest plot, and lines of a picture of curves. More is unreadable on paper; the page is
interactive.
"""

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


COLUMN_WIDTH = 3.03
"""Inches: a column of ACL's style."""

ROW, LINE, AXIS = 0.34, 0.13, 0.45
"""Inches: height of a row in a column, of a line of its name, and of an axis below its rows with what it measures."""

COLUMN_LOOK = {
    "font.size": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "pdf.fonttype": 42,
}


class Strokes(NamedTuple):
    """How an interval is drawn: height of its margin's band, width of its line, and marker and size of its mean."""

    band: float
    line: float
    marker: str
    size: float


ON_PAGE, IN_COLUMN = Strokes(0.7, 1.6, "o", 5), Strokes(ROW - 0.06, 1.2, "D", 3.5)


class Picture(NamedTuple):
    """A picture on paper. `key`: stem of its file names; `height`: in inches; `arms`: entries of the legend."""

    key: str
    title: str
    caption: str
    height: float
    draw: Callable[["Axes"], None]
    arms: Sequence[str] = ()


DRAWS = "matplotlib"
"""What draws pictures for paper; the charts of a page need none of it."""


def differences(document: Document) -> list[Picture]:
    """Return the forest plots that fit on paper; none where they cannot be drawn."""
    if not is_installed(DRAWS):
        return []
    return [_forest(key, plot) for key, plot in forests(document).items() if len(plot.rows) <= MOST_ROWS]


def _forest(key: str, plot: Forest) -> Picture:
    height = 0.8 + sum(0.14 + 0.16 * max(_lines(_named(row)), _lines(_told(row))) for row in plot.rows)
    return Picture(key, plot.title, plot.caption, height, partial(_draw_forest, plot))


def curves(document: Document) -> list[Picture]:
    """Return the curves of the arms that fit on paper, as on the page; none where they cannot be drawn."""
    if not is_installed(DRAWS):
        return []
    looks = styles(document)
    return [_curves(series, looks) for series in document.series if len(series.lines) <= MOST_LINES]


def drawn(folder: Path) -> list[Path]:
    """List the pictures in the folder that a report may have made."""
    charts = {chart for task in known_tasks() for alike in (True, False) for chart in task.charts(on_one_scale=alike)}
    names = ("forest*", "column_figure", "tuning_*", *sorted(charts))
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
                of_arms = figure.axes[0].lines
                figure.legend(of_arms, picture.arms, loc="outside lower center", ncols=_columns(picture.arms))
            for kind, of_a_moment in (("png", "Software"), ("pdf", "CreationDate")):
                with replacing(folder / f"{picture.key}.{kind}") as path:
                    save_figure(figure, path, format=kind, dpi=130, metadata={of_a_moment: None})


def _draw_forest(plot: Forest, axes: "Axes") -> None:
    """Draw the first row on top, names on the left and figures on the right."""
    rows = plot.rows
    for place, row in enumerate(reversed(rows)):
        if row.margin:
            _draw_margin(axes, row.margin, place, ON_PAGE)
        if row.estimate is not None:
            _draw_interval(axes, row, place - 0.12 * bool(row.per_seed), ON_PAGE)
            _draw_seeds(axes, row, place + 0.2)
        axes.text(1.02, place, _told(row), va="center", fontsize="small", transform=axes.get_yaxis_transform())
    axes.axvline(0.0, color="0.4", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [_named(row) for row in reversed(rows)], parse_math=False)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.locator_params(axis="x", nbins=6)  # figures of four digits would run into each other
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(plot.unit)
    axes.set_title(plot.title)


def _draw_margin(axes: "Axes", margin: float, place: float, strokes: Strokes) -> None:
    axes.barh(place, 2 * margin, left=-margin, height=strokes.band, color="0.9", zorder=0)


def _draw_interval(axes: "Axes", row: ForestRow, place: float, strokes: Strokes) -> None:
    """Draw the difference of a row on its interval, if it has one: open and dashed where it is exploratory."""
    assert row.difference is not None, "no row without is drawn"
    colour, span = row.colour, row.interval
    if span is not None:
        dashes = "dashed" if row.is_exploratory else "solid"
        axes.hlines(place, span.low, span.high, color=colour, linewidth=strokes.line, linestyle=dashes)
    inside = "white" if row.is_exploratory else colour
    axes.plot(row.difference, place, strokes.marker, color=colour, markersize=strokes.size, markerfacecolor=inside)


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
        marks = {**look.on_paper, "markevery": -(-len(line.x) // MOST_MARKED)}
        axes.plot(line.x, line.mean, linewidth=1.4, **{**marks, **({} if series.is_joined else {"linestyle": ""})})
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


def write_column_picture(document: Document, folder: Path) -> None:
    """Write `column_figure.pdf`, if there is anything to draw. Equal reports give equal files."""
    panels = {about: rows for about, rows in column_panels(document).items() if rows}
    if not panels or not is_installed(DRAWS):
        return
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    heights = [[ROW + LINE * _lines(_label(row)) for row in rows] for rows in panels.values()]
    top = total = sum(AXIS + sum(of_panel) for of_panel in heights)
    with rc_context(COLUMN_LOOK):
        figure = Figure(figsize=(COLUMN_WIDTH, total))
        for (about, rows), of_panel in zip(panels.items(), heights, strict=True):
            drawn_high = sum(of_panel)
            axes = figure.add_axes((0.02, (top - drawn_high - 0.04) / total, 0.96, drawn_high / total))
            _draw_column(axes, rows, of_panel)
            axes.set_xlabel(f"Difference in {about}", labelpad=2)
            top -= AXIS + drawn_high
        with replacing(folder / "column_figure.pdf") as path:
            save_figure(figure, path, format="pdf", metadata={"CreationDate": None})


def _draw_column(axes: "Axes", rows: Sequence[ForestRow], heights: Sequence[float]) -> None:
    """Draw each row below its name, from the top; heights are in inches."""
    top = sum(heights)
    axes.set_ylim(0, top)
    for row, height in zip(rows, heights, strict=True):
        middle = top - height + ROW / 2
        across: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "top", "zorder": 5}
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85}
        axes.text(0.0, top - 0.03, _label(row), ha="left", bbox=box, **across)
        axes.text(1.0, top - 0.03, row.outcome, ha="right", style="italic", bbox=box, **across)
        _draw_column_row(axes, row, middle)
        top -= height
    axes.set_yticks([])
    axes.locator_params(axis="x", nbins=6)
    axes.tick_params(axis="x", length=2, width=0.6, pad=2)


def _label(row: ForestRow) -> str:
    """Return the name in lines that leave space for the outcome."""
    return wrapped(row.name, 38 if row.outcome else 56)


def _draw_column_row(axes: "Axes", row: ForestRow, middle: float) -> None:
    """Draw seeds above the interval, and published values above the seeds."""
    seeds, mean = middle + 0.06, middle - 0.06
    axes.vlines(0.0, middle - ROW / 2, middle + ROW / 2, color="0.3", linewidth=0.8, zorder=1)
    if row.margin:
        _draw_margin(axes, row.margin, middle, IN_COLUMN)
    _draw_interval(axes, row, mean, IN_COLUMN)
    if row.interval is not None:
        ends = [row.interval.low, row.interval.high]
        axes.plot(ends, [mean, mean], "|", color=row.colour, markersize=4, markeredgewidth=1.0)
    _draw_seeds(axes, row, seeds)
    for low, high in row.published:
        axes.plot([low, high], [seeds + 0.07] * 2, ":v", color=COLOURS[1], markersize=3.5, linewidth=0.9)


def _draw_seeds(axes: "Axes", row: ForestRow, place: float) -> None:
    values = [one.difference for one in row.per_seed]
    axes.plot(values, [place] * len(values), "o", color="black", markerfacecolor="white", markersize=3)
