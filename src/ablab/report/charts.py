"""The report's pictures, as Plotly takes them: data and layout; colours come from the page, dark or light."""

from typing import Any

from ablab.report.curves import curves, facets
from ablab.report.document import Document, Facets
from ablab.report.forest import ForestRow, forest_rows
from ablab.report.heat import heat_maps
from ablab.report.style import COLOURS, styles


def charts(document: Document) -> dict[str, dict[str, Any]]:
    """Each by its key."""
    found = {series.key: curves(series, styles(document)) for series in document.series}
    for picture in document.artefacts:
        found |= facets(picture, styles(document)) if isinstance(picture, Facets) else heat_maps(picture)
    forest = _forest(document)
    return {"forest": forest, **found} if forest else found


def _forest(document: Document) -> dict[str, Any] | None:
    """Differences with their intervals, the first on top."""
    rows = forest_rows(document)[::-1]
    if not rows:
        return None
    places = list(range(len(rows)))
    differences = {
        "type": "scatter",
        "mode": "markers",
        "x": [row.difference for row in rows],
        "y": places,
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [row.span.high - row.difference for row in rows],
            "arrayminus": [row.difference - row.span.low for row in rows],
            "thickness": 2,
            "width": 6,
        },
        "marker": {"size": 10, "color": COLOURS[0]},
        "customdata": [_told(row) for row in rows],
        "hovertemplate": "%{customdata}<extra></extra>",
        "showlegend": False,
    }
    layout = {
        "height": 150 + 46 * len(rows),
        "title": {"text": f"Differences in {document.title}"},
        "xaxis": {"title": {"text": document.unit}, "zeroline": True, "zerolinewidth": 2},
        "yaxis": {
            "tickvals": places,
            "ticktext": [row.name for row in rows],
            "range": [-0.7, len(rows) - 0.3],
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
        },
        "shapes": [_band(place, row.margin) for place, row in zip(places, rows, strict=True) if row.margin],
    }
    return {"data": [differences], "layout": layout}


def _told(row: ForestRow) -> str:
    """When pointed at."""
    lines = [row.name, row.figures, f"{100 * row.span.level:.4g} % interval", row.outcome]
    return "<br>".join(line for line in lines if line)


def _band(place: int, margin: float) -> dict[str, Any]:
    """What is too small to matter, behind a row."""
    corners = {"x0": -margin, "x1": margin, "y0": place - 0.32, "y1": place + 0.32}
    return {"type": "rect", **corners, "fillcolor": "rgba(128,128,128,0.16)", "line": {"width": 0}, "layer": "below"}
