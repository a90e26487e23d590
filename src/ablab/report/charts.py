"""The report's pictures, as Plotly takes them: data and layout; colours come from the page, dark or light."""

from typing import Any, NamedTuple

from ablab.report.curves import Style, curves, facets
from ablab.report.document import Document, Facets, Span
from ablab.report.heat import heat_maps
from ablab.report.written import interval_text, signed

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7F7F7F")
"""Okabe and Ito (2008), told apart with any kind of colour vision; yellow and black give way to the page."""

DASHES = ("solid", "dash", "dot", "dashdot")


def charts(document: Document) -> dict[str, dict[str, Any]]:
    """Each by its key."""
    found = {series.key: curves(series, styles(document)) for series in document.series}
    for picture in document.artefacts:
        found |= facets(picture, styles(document)) if isinstance(picture, Facets) else heat_maps(picture)
    forest = _forest(document)
    return {"forest": forest, **found} if forest else found


def styles(document: Document) -> dict[str, Style]:
    """Colour and dash of each arm, the same in every picture."""
    count = len(COLOURS)
    return {
        arm.name: Style(COLOURS[number % count], DASHES[number // count % len(DASHES)])
        for number, arm in enumerate(document.arms)
    }


class _Row(NamedTuple):
    """A difference in the forest plot. `margin`: 0 where none is claimed."""

    name: str
    difference: float
    span: Span
    digits: int
    margin: float = 0.0
    outcome: str = ""

    @property
    def told(self) -> str:
        """When pointed at."""
        figures = f"{signed(self.difference, self.digits)} {interval_text(self.span, self.digits)}"
        lines = [self.name, figures, f"{100 * self.span.level:.4g} % interval", self.outcome]
        return "<br>".join(line for line in lines if line)


def _forest(document: Document) -> dict[str, Any] | None:
    """Differences with their intervals, the first on top."""
    rows = _forest_rows(document)[::-1]
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
        "customdata": [row.told for row in rows],
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


def forest_caption(document: Document) -> str:
    """Which intervals the forest plot shows."""
    if _claimed(document):
        return "Holm intervals of the claims; the grey band is the margin within which a difference does not matter."
    told = "95 % paired t intervals, uncorrected"
    if not document.claims:
        return f"{told}."
    about = any(claim.title == document.title for claim in document.claims)
    return (
        f"{told}; no claim about {document.title} can be tested." if about else f"{told}; the claims are not about it."
    )


def _forest_rows(document: Document) -> list[_Row]:
    """Of claims about the metric; without any, of all arms."""
    return _claimed(document) or [
        _Row(line.arm, line.difference, line.interval, document.digits)
        for line in document.differences
        if line.difference is not None and line.interval is not None
    ]


def _claimed(document: Document) -> list[_Row]:
    return [
        _Row(
            f"{claim.arm} - {claim.baseline}",
            claim.difference,
            claim.interval,
            claim.digits,
            claim.margin,
            claim.outcome,
        )
        for claim in document.claims
        if claim.difference is not None and claim.interval is not None and claim.title == document.title
    ]


def _band(place: int, margin: float) -> dict[str, Any]:
    """What is too small to matter, behind a row."""
    corners = {"x0": -margin, "x1": margin, "y0": place - 0.32, "y1": place + 0.32}
    return {"type": "rect", **corners, "fillcolor": "rgba(128,128,128,0.16)", "line": {"width": 0}, "layer": "below"}
