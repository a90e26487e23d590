"""Matrices of the arms as Plotly's heat maps: one map an arm, one scale for all; colours come from the page."""

import math
from collections.abc import Sequence
from typing import Any

from ablab.report.document import Matrices, MatrixOf

MOST_WRITTEN = 8
"""Columns of a map in whose cells values can still be written."""

LONGEST = 22
"""Letters of a label; the rest of a longer one shows when its cell is pointed at."""

ROW, TOP, TITLE = 24, 6, 34
"""Pixels: of a row, above all rows, and of an axis's title with the gap before its labels."""

LETTER, SLOPE = 6.4, 0.8
"""Pixels of a letter's width, and what share of it a slanted label needs below."""


def heat_maps(picture: Matrices) -> dict[str, dict[str, Any]]:
    """By the arm's place. One of the `slices` is shown, which is chosen for all of a `section` at once."""
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
        "showscale": False,  # the page has one for all
        "hoverinfo": "text",
    }
    if written:
        heat["texttemplate"] = f"%{{z:.{_decimals(picture)}f}}"
    wide = max(len(label) for label in panel.columns) > 3
    left = round(TITLE + LETTER * _longest(panel.rows))
    below = round(TITLE + (LETTER * SLOPE * _longest(panel.columns) if wide else 14))
    return {
        "data": [heat],
        "slices": dict(zip(picture.slices, panel.slices, strict=True)),
        "rows": [_escaped(f"{picture.y} {row}") for row in panel.rows],
        "columns": [_escaped(f"{picture.x.partition(',')[0]} {column}") for column in panel.columns],
        "section": picture.section,
        "layout": {
            "height": TOP + ROW * len(panel.rows) + below,
            "margin": {"t": TOP, "r": 6, "l": left, "b": below},
            "xaxis": {**_labelled(picture.x, panel.columns), "tickangle": -50 if wide else 0},
            "yaxis": {**_labelled(picture.y, panel.rows), "range": [len(panel.rows) - 0.5, -0.5]},
        },
    }


def _decimals(picture: Matrices) -> int:
    """So many that the largest value has two figures."""
    largest = max(abs(picture.low), abs(picture.high))
    return max(0, 1 - math.floor(math.log10(largest))) if largest else 0


def _labelled(title: str, labels: Sequence[str]) -> dict[str, Any]:
    """By place, since a label may stand twice. Plotly's own search for margins does not end with slanted labels."""
    return {
        "title": {"text": title, "standoff": 4, "font": {"size": 11}},
        "tickvals": list(range(len(labels))),
        "ticktext": [_escaped(_cut(label)) for label in labels],
        "showgrid": False,
        "zeroline": False,
        "tickfont": {"size": 11},
        "automargin": False,
    }


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _longest(labels: Sequence[str]) -> int:
    return max(len(_cut(label)) for label in labels)


def _escaped(text: str) -> str:
    """Plotly reads tags: `</s>` would vanish."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
