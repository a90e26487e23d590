"""Lines of the arms as Plotly takes them: one picture, or one for each line of an artefact."""

from collections.abc import Mapping
from typing import Any

from ablab.report.document import Facets, LineOf, Series
from ablab.report.style import Style


def curves(series: Series, styles: Mapping[str, Style]) -> dict[str, Any]:
    """A line for each arm, the mean over seeds, on a band from the lowest seed to the highest."""
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
                "mode": "lines+markers" if len(line.x) <= 30 else "lines",
                "x": line.x,
                "y": line.mean,
                "name": line.arm,
                "legendgroup": line.arm,
                "line": {"color": look.colour, "width": 2, "dash": look.dash},
                "marker": {"size": 5},
                "hovertemplate": f"{line.arm}<br>{series.x} %{{x}}: %{{y:.4~g}}<extra></extra>",
            }
        )
    return {
        "data": data,
        "layout": {
            "height": 420,
            "title": {"text": series.title},
            "xaxis": {"title": {"text": series.x}},
            "yaxis": {"title": {"text": series.y}},
            "showlegend": False,  # the page has one for all
        },
    }


def facets(picture: Facets, styles: Mapping[str, Style]) -> dict[str, dict[str, Any]]:
    """A small picture for each panel, all on one scale."""
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
    """Places with names: a dot for each arm, a little beside those of the others, on the range of its seeds."""
    step = 0.5 / len(series.lines)
    middle = (len(series.lines) - 1) / 2
    places = series.lines[0].x
    return {
        "data": [
            _dots_of(line, styles[line.arm].colour, (number - middle) * step)
            for number, line in enumerate(series.lines)
        ],
        "layout": {
            "title": {"text": series.title},
            "xaxis": {
                "tickvals": places,
                "ticktext": series.names,
                "range": [min(places) - 0.6, max(places) + 0.6],
                "showgrid": False,
                "zeroline": False,
            },
            "yaxis": {"title": {"text": series.y}},
            "showlegend": False,
        },
    }


def _dots_of(line: LineOf, colour: str, shift: float) -> dict[str, Any]:
    points = list(zip(line.mean, line.low, line.high, strict=True))
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [x + shift for x in line.x],
        "y": line.mean,
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [high - mean for mean, _, high in points],
            "arrayminus": [mean - low for mean, low, _ in points],
            "thickness": 2,
            "width": 0,
        },
        "marker": {"size": 8, "color": colour},
        "hovertemplate": f"{line.arm}<br>%{{y:.4~g}}<extra></extra>",
    }


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
