"""The report as one HTML page that needs no network and opens from disk."""

import base64
import gzip
import json
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple

from ablab.judge.document import Document, Exhibits, Facets, Matrices, TableOf
from ablab.judge.lines import ClaimLine
from ablab.report.charts import alternatives, charts
from ablab.report.claim_words import answers
from ablab.report.columns import PageTable, page_table, table_of_cells
from ablab.report.drawing import drawing, path_drawing
from ablab.report.figures import styles
from ablab.report.forest import forests
from ablab.report.plain_words import plain_words
from ablab.report.sentences import command, cost_words
from ablab.report.tables import OTHERWISE, arms_by_effect, next_metric, tables

STROKES = {"solid": "none", "dash": "6 3", "dot": "2 2", "dashdot": "6 2 2 2"}
"""Plotly's dashes as SVG dash arrays."""

SHAPES = {
    "circle": "M9 5a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "square": "M9.500 1.500h7v7h-7z",
    "diamond": "M13 0l5 5l-5 5l-5-5z",
    "triangle-up": "M13 0l5 9h-10z",
    "x": "M9 3l2-2l2 2l2-2l2 2l-2 2l2 2l-2 2l-2-2l-2 2l-2-2l2-2z",
    "triangle-down": "M13 10l5-9h-10z",
    "cross": "M11.500 1h3v2.500h2.500v3h-2.500v2.500h-3v-2.500h-2.500v-3h2.500z",
    "star": "M13 0l1.300 3.500h3.700l-3 2.300l1.100 3.700l-3.100-2.200l-3.100 2.200l1.100-3.700l-3-2.300h3.700z",
}
"""Plotly's markers as SVG paths in the middle of a swatch."""

MOST_OPEN = 6
"""Charts of a section that stands open; sections of more are folded."""

MOST_ROWS = 24
"""Rows of all forest plots that stand open."""


class Told(NamedTuple):
    """A claim with its verdict in plain words, the name of its class, its drawing, and that of its looks."""

    claim: ClaimLine
    words: str
    looks: str
    drawing: str | None
    path: str | None


class Section(NamedTuple):
    """Artefacts under one title. `charts`: their number. `tables`: of those that are tables, by artefact and arm."""

    name: str
    id: str
    pictures: list[Facets | Matrices | Exhibits]
    charts: int
    tables: dict[str, PageTable]


def page(document: Document) -> str:
    """Return HTML that contains its style, scripts, data and Plotly."""
    drawn = charts(document)
    sections, plots = _sections(document), forests(document)
    told = [_told(claim, document) for claim in document.claims]
    rows = sum(len(plot.rows) for plot in plots.values())
    shown = tables(document)
    return rendered(
        "page.html",
        document=document,
        looks={name: (look.colour, STROKES[look.dash], SHAPES[look.marker]) for name, look in styles(document).items()},
        arms=arms_by_effect(document),
        command=command(document.setup) if document.setup else "",
        cost=cost_words(document.setup) if document.setup else "",
        told=told,
        answers=answers(document.claims) if told else "",
        tables={table.key: page_table(table) for table in shown},
        next_metric=next_metric(document),
        aside=OTHERWISE,
        titles={table.key: table.title for table in shown},
        forests=plots,
        # Where claims are drawn already, the plots only put them side by side.
        forests_open=not any(one.drawing for one in told) and rows <= MOST_ROWS,
        sections=sections,
        most_open=MOST_OPEN,
        alternatives=alternatives(document),
        data={key: _embedded(chart) for key, chart in drawn.items()},
        heights={key: chart["layout"].get("height", 450) for key, chart in drawn.items()},
        scripts=[_file(name) for name in ("page.js", "charts.js")],
        plotly=_plotly() if drawn else "",
    )


def rendered(template: str, **content: Any) -> str:
    """Return a page of this content in the style of all pages, by its template in `report/page`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("ablab.report", "page")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template(template)
    return page.render(style=_file("page.css"), dark=_file("dark.css"), **content)


def _file(name: str) -> str:
    return (files("ablab.report") / "page" / name).read_text(encoding="utf-8")


def _told(claim: ClaimLine, document: Document) -> Told:
    looks = claim.outcome.partition(",")[0].replace(" ", "-")
    return Told(claim, plain_words(claim, document.metric), looks, drawing(claim), path_drawing(claim))


def _sections(document: Document) -> list[Section]:
    """Group the pictures of artefacts by section."""
    grouped = groupby(document.artefacts, lambda picture: picture.section)
    found = [(name, list(pictures)) for name, pictures in grouped]
    return [
        Section(
            name, f"section-{number}", pictures, sum(len(picture.panels) for picture in pictures), _tables(pictures)
        )
        for number, (name, pictures) in enumerate(found, 1)
    ]


def _tables(pictures: list[Facets | Matrices | Exhibits]) -> dict[str, PageTable]:
    keyed = {f"{picture.key}-{n}": panel for picture in pictures for n, panel in enumerate(picture.panels, 1)}
    return {
        key: table_of_cells(key, panel.columns, panel.rows)
        for key, panel in keyed.items()
        if isinstance(panel, TableOf)
    }


@cache
def _plotly() -> str:
    """Return Plotly, compressed: the page unpacks and runs it once it has loaded."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def _embedded(content: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
