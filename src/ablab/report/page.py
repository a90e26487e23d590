"""The report as one HTML page that needs no network and opens from disk."""

import json
from importlib.resources import files
from itertools import groupby
from typing import Any

from ablab.report.charts import charts
from ablab.report.document import Document, Facets, Matrices
from ablab.report.figures import styles
from ablab.report.forest import forests
from ablab.report.tables import (
    arms_table,
    claims_table,
    differences_table,
    effects_table,
    metrics_table,
    test_sets_table,
)

STROKES = {"solid": "none", "dash": "6 3", "dot": "2 2", "dashdot": "6 2 2 2"}
"""Plotly's dashes as SVG dash arrays."""


def page(document: Document) -> str:
    """Return HTML that contains its style, script, data and Plotly."""
    from jinja2 import Environment, StrictUndefined
    from plotly.offline import get_plotlyjs

    folder = files("ablab.report") / "page"
    read = {name: (folder / name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js")}
    drawn = charts(document)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(read["page.html"]).render(
        document=document,
        looks={name: (style.colour, STROKES[style.dash]) for name, style in styles(document).items()},
        claims=claims_table(document),
        arms=arms_table(document),
        test_sets=test_sets_table(document),
        differences=differences_table(document),
        effects=effects_table(document),
        metrics=metrics_table(document),
        charts=drawn,
        forests=forests(document),
        sections=_sections(document),
        style=read["page.css"],
        script=read["page.js"],
        data=_embedded(drawn),
        plotly=get_plotlyjs() if drawn else "",
    )


def _sections(document: Document) -> list[tuple[str, list[Facets | Matrices]]]:
    """Group the pictures of artefacts by section."""
    return [(name, list(pictures)) for name, pictures in groupby(document.artefacts, lambda picture: picture.section)]


def _embedded(content: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
