"""The report's pictures as Plotly data and layout, and what each shows in words, for readers who do not see it.

The page adds the colours of its theme, dark or light.
"""

from collections.abc import Sequence
from typing import Any

from ablab.judge.document import Document, Exhibits, Facets, LineOf, Matrices, MatrixOf, Series
from ablab.judge.lines import EXPLORATORY
from ablab.report.figures import curves, error_bars, escaped, facets, heat_maps, styles
from ablab.report.forest import Estimate, Forest, ForestRow, forests, wrapped

LABEL = 28
"""Maximum characters per line of a name beside a plot, so that the plot still fits on a phone."""


def charts(document: Document) -> dict[str, dict[str, Any]]:
    """Return every chart of the document by its key."""
    found = {key: _forest(plot) for key, plot in forests(document).items()}
    found |= {series.key: curves(series, styles(document)) for series in document.series}
    for picture in document.artefacts:
        if not isinstance(picture, Exhibits):
            found |= facets(picture, styles(document)) if isinstance(picture, Facets) else heat_maps(picture)
    return found


def _forest(plot: Forest) -> dict[str, Any]:
    """Return a forest plot: differences with their intervals, the first row on top."""
    rows = plot.rows[::-1]
    shown = [(place, row, row.estimate) for place, row in enumerate(rows) if row.estimate]
    kinds = dict.fromkeys((row.is_exploratory, row.colour) for row in plot.rows if row.estimate)
    data = [_points([one for one in shown if (one[1].is_exploratory, one[1].colour) == kind]) for kind in sorted(kinds)]
    data += [_seeds(rows)]
    layout = {
        "height": 150 + 46 * len(rows),
        "title": {"text": escaped(plot.title)},
        "xaxis": {"title": {"text": escaped(plot.unit)}, "rangemode": "tozero", "zeroline": True, "zerolinewidth": 2},
        "yaxis": {
            "tickvals": list(range(len(rows))),
            "ticktext": [_folded(row.name) for row in rows],
            "range": [-0.7, len(rows) - 0.3],
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
        },
        "annotations": [_instead(place, row) for place, row in enumerate(rows) if not row.estimate],
        "shapes": [_band(place, row.margin) for place, row in enumerate(rows) if row.margin],
    }
    return {"data": data, "layout": layout}


def _seeds(rows: Sequence[ForestRow]) -> dict[str, Any]:
    """Return the circles of the seeds, above the means."""
    at = [(one.difference, place + 0.22) for place, row in enumerate(rows) if row.estimate for one in row.per_seed]
    x, y = [x for x, _ in at], [y for _, y in at]
    look = {"size": 6, "color": "#7F7F7F", "symbol": "circle-open"}
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "marker": look, "hoverinfo": "x", "showlegend": False}


def _points(shown: Sequence[tuple[int, ForestRow, Estimate]]) -> dict[str, Any]:
    """Return the differences of rows of a colour at their places; open where they are exploratory."""
    is_aside, colour = shown[0][1].is_exploratory, shown[0][1].colour
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [estimate.difference for _, _, estimate in shown],
        "y": [place for place, _, _ in shown],
        "error_x": error_bars([(one.difference, one.span.low, one.span.high) for _, _, one in shown], width=6),
        "marker": {"size": 10, "color": colour, "symbol": "circle-open" if is_aside else "circle"},
        "customdata": [_told(row, estimate) for _, row, estimate in shown],
        "hovertemplate": "%{customdata}<extra></extra>",
        "showlegend": False,
    }


def _instead(place: int, row: ForestRow) -> dict[str, Any]:
    """Return the annotation that says why a row has no estimate."""
    text = _folded(row.outcome)
    return {
        "xref": "paper",
        "x": 0.01,
        "xanchor": "left",
        "align": "left",
        "y": place,
        "text": text,
        "showarrow": False,
    }


def _told(row: ForestRow, estimate: Estimate) -> str:
    """Return the hover text of a row."""
    lines = [row.name, row.figures, f"{100 * estimate.span.level:.4g} % interval", row.outcome]
    return "<br>".join(escaped(line) for line in lines if line)


def _folded(text: str) -> str:
    return escaped(wrapped(text, LABEL)).replace("\n", "<br>")


def _band(place: int, margin: float) -> dict[str, Any]:
    """Return the grey band behind a row: differences within the margin, too small to matter."""
    corners = {"x0": -margin, "x1": margin, "y0": place - 0.32, "y1": place + 0.32}
    return {"type": "rect", **corners, "fillcolor": "rgba(128,128,128,0.16)", "line": {"width": 0}, "layer": "below"}


MOST_TOLD = 12
"""Lines of a chart whose ends are told; a table below the chart has all of them."""


def alternatives(document: Document) -> dict[str, str]:
    """Return the text alternative of every chart, by the chart's key."""
    found = {key: _forest_told(plot) for key, plot in forests(document).items()}
    found |= {series.key: _series_told(series) for series in document.series}
    for picture in document.artefacts:
        if isinstance(picture, Facets):
            found |= {panel.key: _series_told(panel) for panel in picture.panels}
        elif isinstance(picture, Matrices):
            found |= {f"{picture.key}-{n}": _matrix_told(picture, panel) for n, panel in enumerate(picture.panels, 1)}
    return found


def _forest_told(plot: Forest) -> str:
    rows = [f"{row.name} {_outcome_told(row)}" for row in plot.rows[:MOST_TOLD]]
    return f"{plot.title}, in {plot.unit or 'its unit'}: {'; '.join(rows)}{_more(len(plot.rows))}."


def _outcome_told(row: ForestRow) -> str:
    return row.outcome if not row.figures else f"{EXPLORATORY.lower() * row.is_exploratory}{row.figures}"


def _series_told(series: Series) -> str:
    lines = [_ends(line) for line in series.lines[:MOST_TOLD]]
    axes = f"{series.y or 'values'} by {series.x or 'place'}"
    return f"{series.title}: {axes}. {'; '.join(lines)}{_more(len(series.lines))}."


def _ends(line: LineOf) -> str:
    if not line.x:
        return f"{line.marked} has no points"
    first, last = f"{line.mean[0]:.4g} at {line.x[0]:g}", f"{line.mean[-1]:.4g} at {line.x[-1]:g}"
    return f"{line.marked}: {first}" if len(line.x) == 1 else f"{line.marked}: from {first} to {last}"


def _matrix_told(picture: Matrices, panel: MatrixOf) -> str:
    size = f"{len(panel.rows)} rows ({picture.y}) and {len(panel.columns)} columns ({picture.x})"
    return f"{picture.title}, {panel.marked}: {picture.value} in {size}, from {picture.low:.3g} to {picture.high:.3g}."


def _more(number: int) -> str:
    return f"; and {number - MOST_TOLD} more" if number > MOST_TOLD else ""
