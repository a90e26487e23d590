"""Pictures of artefacts, drawn to a file: lines, a heat map, a table of texts, or small multiples of one scale."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ablab.files import write_picture
from ablab.store.artefacts import Artefact, MatrixArtefact, SeriesArtefact, Slice, Trace

COLUMNS = 3

FEW = 12
"""Maximum points of a line whose places are all marked on the axis, unless they have names."""

NARROW = 6
"""Maximum named places of a panel that stands beside others; with more, panels stand one below the other."""

COLOURS = "cividis"

MOST_NUMBERS = 24
"""Maximum numbers along a side of a heat map; of more, evenly spaced ones are written. Tokens are all written."""

FEW_NUMBERS = 16
"""The same, of one of two large panels side by side."""

WIDEST, TALLEST = 9.0, 7.5
"""Inches: largest heat map of numbered places. Cells of larger matrices are small, not the picture large."""

WRITTEN = 16
"""Maximum letters of a line in a cell."""

LETTER = 0.125
"""Inches that a token needs beside a small panel."""

PANEL = (1.15, 3.2)
"""Inches: smallest and largest side of a small panel. Smallest: of 16 heads on one page."""


def draw(artefact: Artefact, path: Path) -> None:
    """Draw a panel per line of a series artefact; of a matrix artefact its small multiples, or its first slice."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    if isinstance(artefact, SeriesArtefact):
        _series(figure, artefact)
    elif isinstance(artefact, MatrixArtefact):
        draw_matrix(figure, artefact)
    width = max(30, round(figure.get_figwidth() * 7.5))
    titles = [artefact.title] if artefact.section is None else [artefact.section, artefact.title]
    title = figure.suptitle("\n".join(textwrap.wrap(": ".join(titles), width)), fontsize="medium")
    title.set_parse_math(False)
    write_picture(path, figure)


def _series(figure: Any, artefact: SeriesArtefact) -> None:
    most = max((len(trace.names) for trace in artefact.series), default=0)
    columns = min(COLUMNS, len(artefact.series)) if most <= NARROW else 1
    rows = -(-len(artefact.series) // columns)
    figure.set_size_inches(max(3.0 * COLUMNS, 1.5 + 0.35 * most * columns), 0.8 + 2.2 * rows)
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False).flat
    for axes, trace in zip(grid, artefact.series, strict=False):
        axes.plot(trace.x, trace.y, "o" if trace.names else "o-" if len(trace.x) <= FEW else "-")
        axes.set_title(trace.label, fontsize="small")
        _places(axes, trace)
    for axes in list(grid)[len(artefact.series) :]:
        axes.set_axis_off()
    figure.supxlabel(artefact.x.title, fontsize="small")
    figure.supylabel(artefact.y.title, fontsize="small")


def _places(axes: Any, trace: Trace) -> None:
    """Mark every place along x that has a name, or the places of few points."""
    axes.set_xmargin(0.2 if len(trace.x) <= NARROW else 0.03)
    if trace.names:
        turned: dict[str, Any] = {} if len(trace.names) <= NARROW else {"rotation": 60, "ha": "right"}
        axes.set_xticks(trace.x, trace.names, fontsize="small", parse_math=False, **turned)
    elif len(trace.x) <= FEW:
        axes.set_xticks(trace.x, [f"{x:g}" for x in trace.x])
    axes.grid(axis="y", alpha=0.25)


def draw_matrix(figure: Any, artefact: MatrixArtefact) -> None:
    """Draw small multiples where slices have a place among them, else the first slice."""
    panels = [part for part in artefact.slices if part.row or part.column]
    if panels and any(part.values != panels[0].values for part in panels):
        _multiples(figure, artefact, panels)
    else:
        _one(figure, artefact, artefact.slices[0])


def _one(figure: Any, artefact: MatrixArtefact, part: Slice) -> None:
    columns, rows = artefact.x.labels, artefact.y.labels
    width, height = (1.15, 0.36) if part.cells else (0.4, 0.32)
    figure.set_size_inches(2.5 + _side(columns, width, WIDEST), 1.8 + _side(rows, height, TALLEST))
    axes = figure.add_subplot()
    image = _heat(axes, part.values, *_range([part]))
    _label(axes, artefact, most=len(rows) + len(columns) if part.cells else MOST_NUMBERS, flat=bool(part.cells))
    axes.set_xlabel(artefact.x.title)
    axes.set_ylabel(artefact.y.title)
    if part.cells:
        _write(axes, image, part)
    figure.colorbar(image, label=artefact.value)


def _write(axes: Any, image: Any, part: Slice) -> None:
    """Write each cell's text in black or white, whichever its colour lets one read."""
    for row, (texts, values) in enumerate(zip(part.cells, part.values, strict=True)):
        for column, (text, value) in enumerate(zip(texts, values, strict=True)):
            red, green, blue, _ = image.cmap(image.norm(value))
            ink = "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
            cut = "\n".join(line if len(line) <= WRITTEN else f"{line[: WRITTEN - 1]}…" for line in text.split("\n"))
            axes.text(column, row, cut, ha="center", va="center", color=ink, fontsize=8, parse_math=False)


def _multiples(figure: Any, artefact: MatrixArtefact, panels: Sequence[Slice]) -> None:
    """Draw a grid of panels; tokens stand only at its left side and below the lowest panel of each column."""
    rows, columns = (list(dict.fromkeys(getattr(part, side) for part in panels)) for side in ("row", "column"))
    few = len(columns) * len(rows) <= 2
    width, height = (
        6.0 if few else min(PANEL[1], max(PANEL[0], LETTER * len(axis.labels))) for axis in (artefact.x, artefact.y)
    )
    figure.set_size_inches(2.2 + width * len(columns), 1.6 + (height + 0.25) * len(rows))
    grid = figure.subplots(len(rows), len(columns), squeeze=False)
    low, high = _range(panels)
    lowest = {part.column: rows.index(part.row) for part in panels}
    for axes in grid.flat:
        axes.set_axis_off()
    image = None
    for part in panels:
        row, column = rows.index(part.row), columns.index(part.column)
        axes = grid[row, column]
        axes.set_axis_on()
        image = _heat(axes, part.values, low, high)
        axes.set_title(", ".join(name for name in (part.row, part.column) if name), fontsize=8, pad=3)
        _label(axes, artefact, most=FEW_NUMBERS if few else MOST_NUMBERS, size=8 if few else 7)
        axes.tick_params(length=1.5, pad=1.5, labelleft=column == 0, labelbottom=row == lowest[part.column])
    figure.supxlabel(artefact.x.title, fontsize="small")
    figure.supylabel(artefact.y.title, fontsize="small")
    figure.colorbar(image, ax=list(grid.flat), label=artefact.value, fraction=0.04, pad=0.01, aspect=40)


def _heat(axes: Any, values: Sequence[Sequence[float]], low: float, high: float | None) -> Any:
    return axes.imshow(values, cmap=COLOURS, vmin=low, vmax=high, aspect="auto", interpolation="nearest")


def _range(parts: Sequence[Slice]) -> tuple[float, float]:
    """Return the limits of the colours: 0, or the smallest value below it, and the largest value."""
    values = [value for part in parts for row in part.values for value in row]
    return min(0.0, *values), max(values)


def _label(axes: Any, artefact: MatrixArtefact, *, most: int, size: float = 10, flat: bool = False) -> None:
    columns, rows = _thinned(artefact.x.labels, most), _thinned(artefact.y.labels, most)
    turned: dict[str, Any] = {}
    if not flat and not all(label.isdecimal() for label in columns[1]) and max(map(len, columns[1])) > 1:
        turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if size >= 10 else {"rotation": 90}
    axes.set_xticks(*columns, fontsize=size, parse_math=False, **turned)
    axes.set_yticks(*rows, fontsize=size, parse_math=False)


def _thinned(labels: Sequence[str], most: int) -> tuple[list[int], list[str]]:
    """Return the places and texts of at most so many numbers, evenly spaced from the first; of tokens all."""
    apart = -(-len(labels) // most) if all(label.isdecimal() for label in labels) else 1
    places = list(range(0, len(labels), apart))
    return places, [labels[place] for place in places]


def _side(labels: Sequence[str], cell: float, most: float) -> float:
    """Return the side of a heat map in inches: limited only where not every label must be written."""
    return min(most, cell * len(labels)) if all(label.isdecimal() for label in labels) else cell * len(labels)
