"""Text alternatives of the page's charts: what each shows, for readers who do not see it."""

from ablab.judge.document import Document, Facets, LineOf, Matrices, MatrixOf, Series
from ablab.report.forest import Forest, forests

MOST_TOLD = 12
"""Lines of a chart whose ends are told; a table below the chart has all of them."""


def alternatives(document: Document) -> dict[str, str]:
    """Return the text alternative of every chart, by the chart's key."""
    found = {key: _forest(plot) for key, plot in forests(document).items()}
    found |= {series.key: _series(series) for series in document.series}
    for picture in document.artefacts:
        if isinstance(picture, Facets):
            found |= {panel.key: _series(panel) for panel in picture.panels}
        else:
            found |= {f"{picture.key}-{n}": _matrix(picture, panel) for n, panel in enumerate(picture.panels, 1)}
    return found


def _forest(plot: Forest) -> str:
    rows = [f"{row.name} {row.figures or row.outcome}" for row in plot.rows[:MOST_TOLD]]
    return f"{plot.title}, in {plot.unit or 'its unit'}: {'; '.join(rows)}{_more(len(plot.rows))}."


def _series(series: Series) -> str:
    lines = [_ends(line) for line in series.lines[:MOST_TOLD]]
    axes = f"{series.y or 'values'} by {series.x or 'place'}"
    return f"{series.title}: {axes}. {'; '.join(lines)}{_more(len(series.lines))}."


def _ends(line: LineOf) -> str:
    if not line.x:
        return f"{line.marked} has no points"
    first, last = f"{line.mean[0]:.4g} at {line.x[0]:g}", f"{line.mean[-1]:.4g} at {line.x[-1]:g}"
    return f"{line.marked}: {first}" if len(line.x) == 1 else f"{line.marked}: from {first} to {last}"


def _matrix(picture: Matrices, panel: MatrixOf) -> str:
    size = f"{len(panel.rows)} rows ({picture.y}) and {len(panel.columns)} columns ({picture.x})"
    return f"{picture.title}, {panel.marked}: {picture.value} in {size}, from {picture.low:.3g} to {picture.high:.3g}."


def _more(number: int) -> str:
    return f"; and {number - MOST_TOLD} more" if number > MOST_TOLD else ""
