"""The lines and matrices of the arms as Plotly data. The page decides the colours of matrices."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ablab.judge.document import Document, Facets, LineOf, Matrices, MatrixOf, Series
from ablab.study.looks import Style, styles_of

ASIDE = "#7A4FA3"
"""Colour of what is exploratory, whose marks are open and lines dashed."""

MOST_MARKED = 30
"""Points of a line that all bear its marker; of more, some that are spread evenly do."""


def styles(document: Document) -> dict[str, Style]:
    """Return the style of each arm, the same in every picture."""
    return styles_of([arm.name for arm in document.arms])


def curves(series: Series, styles: Mapping[str, Style]) -> dict[str, Any]:
    """Draw a line for each arm, such as the mean over seeds, on its band."""
    data: list[dict[str, Any]] = []
    for line in series.lines:
        look = styles[line.arm]
        band = {"type": "scatter", "mode": "lines", "x": line.x, "legendgroup": line.arm, "showlegend": False}
        band |= {"line": {"width": 0, "color": look.colour}, "hoverinfo": "skip"}
        if line.low != line.high:
            data.append({**band, "y": line.low})
            data.append({**band, "y": line.high, "fill": "tonexty", "fillcolor": _faint(look.colour)})
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if series.is_joined else "markers",
                "x": line.x,
                "y": line.mean,
                "name": escaped(line.marked),
                "legendgroup": line.arm,
                "line": {"color": look.colour, "width": 2, "dash": look.dash},
                "marker": {
                    "size": 6,
                    "symbol": look.marker,
                    "maxdisplayed": MOST_MARKED if len(line.x) > MOST_MARKED else 0,
                },
                "hovertemplate": f"{escaped(line.marked)}<br>{escaped(series.x)} %{{x}}: %{{y:.4~g}}<extra></extra>",
            }
        )
    return {
        "data": data,
        "layout": {
            "height": 420,
            "title": {"text": escaped(series.title)},
            "xaxis": {"title": {"text": escaped(series.x)}, **({"type": "log"} if series.is_log else {})},
            "yaxis": {"title": {"text": escaped(series.y)}},
            "showlegend": False,  # the page shows one below each chart
        },
    }


def facets(picture: Facets, styles: Mapping[str, Style]) -> dict[str, dict[str, Any]]:
    """Draw a small picture for each panel, all on one scale."""
    values = [value for panel in picture.panels for line in panel.lines for value in (*line.low, *line.high)]
    room = 0.06 * (max(values) - min(values)) or 1.0
    extent = [min(values) - room, max(values) + room]
    found = {}
    for panel in picture.panels:
        chart = _dots(panel, styles) if panel.names else curves(panel, styles)
        chart["layout"]["height"] = 280
        chart["layout"]["yaxis"]["range"] = extent
        if max(len(line.x) for line in panel.lines) <= 12:
            chart["layout"]["xaxis"] = {"dtick": 1, **chart["layout"]["xaxis"]}
        found[panel.key] = chart
    return found


def _dots(series: Series, styles: Mapping[str, Style]) -> dict[str, Any]:
    """Draw named places: a dot per arm, slightly shifted so that arms do not overlap, with the range of its seeds."""
    step = 0.5 / len(series.lines)
    middle = (len(series.lines) - 1) / 2
    places = series.lines[0].x
    return {
        "data": [
            _dots_of(line, styles[line.arm], (number - middle) * step) for number, line in enumerate(series.lines)
        ],
        "layout": {
            "title": {"text": escaped(series.title)},
            "xaxis": {
                "tickvals": places,
                "ticktext": [_lines(name) for name in series.names],
                "range": [min(places) - 0.6, max(places) + 0.6],
                "showgrid": False,
                "zeroline": False,
            },
            "yaxis": {"title": {"text": escaped(series.y)}},
            "showlegend": False,
        },
    }


def _dots_of(line: LineOf, look: Style, shift: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [x + shift for x in line.x],
        "y": line.mean,
        "error_y": error_bars(list(zip(line.mean, line.low, line.high, strict=True)), width=0),
        "name": escaped(line.marked),
        "showlegend": False,
        "marker": {"size": 8, "color": look.colour, "symbol": look.marker},
        "hovertemplate": f"{escaped(line.marked)}<br>%{{y:.4~g}}<extra></extra>",
    }


def error_bars(points: Sequence[tuple[float, float, float]], *, width: int) -> dict[str, Any]:
    """Return the bars of points, each a value with its low and its high end. `width`: of their caps."""
    up, down = [high - value for value, _, high in points], [value - low for value, low, _ in points]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 2, "width": width}


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"


MOST_WRITTEN = 8
"""Maximum columns of a heat map whose cells show their values."""

LONGEST = 22
"""Maximum characters of a label; hovering over the cell shows the whole label."""

ROW, TOP, TITLE = 24, 6, 34
"""Pixels: height of a row, space above all rows, and an axis title with the gap to its labels."""

MOST_NUMBERED = 16
"""Rows or columns of a heat map beyond which numbers stand at some alone, and cells are small. Tokens stand at all."""

WRITTEN = 1.6
"""Height of a row whose cells have texts of two lines, in rows."""

LETTER, SLOPE = 6.4, 0.8
"""Width of a letter in pixels, and the share of it that a slanted label needs below the axis."""


def heat_maps(picture: Matrices) -> dict[str, dict[str, Any]]:
    """Return a heat map per arm, numbered by the arm's place. One slice is shown, chosen for a whole section."""
    written = len(picture.slices) == 1 and all(len(panel.columns) <= MOST_WRITTEN for panel in picture.panels)
    return {
        f"{picture.key}-{number}": _heat_map(picture, panel, written=written)
        for number, panel in enumerate(picture.panels, 1)
    }


def _heat_map(picture: Matrices, panel: MatrixOf, *, written: bool) -> dict[str, Any]:
    heat = {
        "type": "heatmap",
        "zmin": picture.low,
        "zmax": picture.high,
        "xgap": 1,
        "ygap": 1,
        "showscale": False,  # the page shows one for all charts
        "hoverinfo": "text",
    }
    if panel.cells:
        heat["texttemplate"] = "%{text}"
    elif written:
        heat["texttemplate"] = f"%{{z:.{_decimals(picture)}f}}"
    if max(map(_apart, (panel.columns, panel.rows))) > 1:
        heat |= {"xgap": 0, "ygap": 0}  # gaps would hide the small cells
    row = ROW * WRITTEN if panel.cells else ROW / _apart(panel.rows)
    wide = max(len(label) for label in panel.columns) > 3
    left = round(TITLE + LETTER * _longest(panel.rows))
    below = round(TITLE + (LETTER * SLOPE * _longest(panel.columns) if wide else 14))
    return {
        "data": [heat],
        "slices": dict(zip(picture.slices, panel.slices, strict=True)),
        "first": picture.slices[0],  # a browser has keys that are whole numbers in the order of these
        "cells": [[_lines(text) for text in texts] for texts in panel.cells[0]] if panel.cells else None,
        "rows": [escaped(f"{picture.y} {name}") for name in panel.rows],
        "columns": [escaped(f"{picture.x.partition(',')[0]} {column}") for column in panel.columns],
        "section": picture.section,
        "layout": {
            "height": round(TOP + row * len(panel.rows) + below),
            "margin": {"t": TOP, "r": 6, "l": left, "b": below},
            "xaxis": {**_labelled(picture.x, panel.columns), "tickangle": -50 if wide else 0},
            "yaxis": {**_labelled(picture.y, panel.rows), "range": [len(panel.rows) - 0.5, -0.5]},
        },
    }


def _decimals(picture: Matrices) -> int:
    """Return the decimals that show two significant figures of the largest value."""
    largest = max(abs(picture.low), abs(picture.high))
    return max(0, 1 - math.floor(math.log10(largest))) if largest else 0


def _labelled(title: str, labels: Sequence[str]) -> dict[str, Any]:
    """Label an axis by position, since a label may occur twice; of very many labels, some that are evenly spaced.

    Automatic margins are off: Plotly's search for them does not end with slanted labels.
    """
    apart = _apart(labels)
    return {
        "title": {"text": escaped(title), "standoff": 4, "font": {"size": 11}},
        "tickvals": list(range(0, len(labels), apart)),
        "ticktext": [escaped(_cut(label)) for label in labels[::apart]],
        "showgrid": False,
        "zeroline": False,
        "tickfont": {"size": 11},
        "automargin": False,
    }


def _apart(labels: Sequence[str]) -> int:
    """Return the distance between places whose labels are written: above 1 for many numbers, which can be counted."""
    return -(-len(labels) // MOST_NUMBERED) if all(label.isdecimal() for label in labels) else 1


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _longest(labels: Sequence[str]) -> int:
    return max(len(_cut(label)) for label in labels)


def escaped(text: str) -> str:
    """Escape text that Plotly would read as tags: `</s>` would vanish."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _lines(text: str) -> str:
    """Escape a text of several lines."""
    return escaped(text).replace("\n", "<br>")
