"""The report's pictures, as Plotly takes them: data and layout; colours come from the page, dark or light."""

from typing import Any

from ablab.report.document import Document, Series, Span
from ablab.report.tables import interval_text, signed

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7F7F7F")
"""Okabe and Ito (2008), told apart with any kind of colour vision; yellow and black give way to the page."""

DASHES = ("solid", "dash", "dot", "dashdot")


def charts(document: Document) -> dict[str, dict[str, Any]]:
    """Each by its key."""
    found = {series.key: _curves(document, series) for series in document.series}
    forest = _forest(document)
    return {"forest": forest, **found} if forest else found


def styles(document: Document) -> dict[str, tuple[str, str]]:
    """Colour and dash of each arm, the same in every picture."""
    count = len(COLOURS)
    return {
        arm.name: (COLOURS[number % count], DASHES[number // count % len(DASHES)])
        for number, arm in enumerate(document.arms)
    }


def _forest(document: Document) -> dict[str, Any] | None:
    """Differences with their intervals: of claims about the metric; without any, of all arms."""
    rows: list[tuple[str, float, Span, int, float, str]] = [
        (f"{c.arm} - {c.baseline}", c.difference, c.interval, c.digits, c.margin, c.outcome)
        for c in document.claims
        if c.difference is not None and c.interval is not None and c.title == document.title
    ]
    if not rows:
        rows = [
            (line.arm, line.difference, line.interval, document.digits, 0.0, "")
            for line in document.differences
            if line.difference is not None and line.interval is not None
        ]
    if not rows:
        return None
    rows = rows[::-1]
    margins = [
        {
            "type": "rect",
            "x0": -margin,
            "x1": margin,
            "y0": number - 0.32,
            "y1": number + 0.32,
            "fillcolor": "rgba(128,128,128,0.16)",
            "line": {"width": 0},
            "layer": "below",
        }
        for number, (*_, margin, _outcome) in enumerate(rows)
        if margin
    ]
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "markers",
                "x": [difference for _, difference, *_ in rows],
                "y": list(range(len(rows))),
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [span.high - difference for _, difference, span, *_ in rows],
                    "arrayminus": [difference - span.low for _, difference, span, *_ in rows],
                    "thickness": 2,
                    "width": 6,
                },
                "marker": {"size": 10, "color": COLOURS[0]},
                "customdata": [
                    f"{name}<br>{signed(difference, digits)} {interval_text(span, digits)}"
                    f"<br>{100 * span.level:.4g} % interval" + (f"<br>{outcome}" if outcome else "")
                    for name, difference, span, digits, _, outcome in rows
                ],
                "hovertemplate": "%{customdata}<extra></extra>",
                "showlegend": False,
            }
        ],
        "layout": {
            "height": 150 + 46 * len(rows),
            "title": {"text": f"Differences in {document.title}"},
            "xaxis": {"title": {"text": document.unit}, "zeroline": True, "zerolinewidth": 2},
            "yaxis": {
                "tickvals": list(range(len(rows))),
                "ticktext": [name for name, *_ in rows],
                "range": [-0.7, len(rows) - 0.3],
                "showgrid": False,
                "zeroline": False,
                "automargin": True,
            },
            "shapes": margins,
        },
    }


def _curves(document: Document, series: Series) -> dict[str, Any]:
    """A line for each arm, the mean over seeds, on a band from the lowest seed to the highest."""
    looks = styles(document)
    data: list[dict[str, Any]] = []
    for line in series.lines:
        colour, dash = looks[line.arm]
        band = {"type": "scatter", "mode": "lines", "x": line.x, "legendgroup": line.arm, "showlegend": False}
        band |= {"line": {"width": 0, "color": colour}, "hoverinfo": "skip"}
        if line.low != line.high:
            data.append({**band, "y": line.low})
            data.append({**band, "y": line.high, "fill": "tonexty", "fillcolor": _faint(colour)})
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if len(line.x) <= 30 else "lines",
                "x": line.x,
                "y": line.mean,
                "name": line.arm,
                "legendgroup": line.arm,
                "line": {"color": colour, "width": 2, "dash": dash},
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


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
