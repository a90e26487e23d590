"""Pictures of artefacts, drawn to a file according to their kind."""

import textwrap
from pathlib import Path
from typing import Any

from ablab.store.artefacts import Artefact, SeriesArtefact, Trace
from ablab.text import write_picture
from ablab.transformer.analysis.plot_matrices import draw_matrix

COLUMNS = 3

FEW = 12
"""Maximum points of a line whose places are all marked on the axis, unless they have names."""

NARROW = 6
"""Maximum named places of a panel that stands beside others; with more, panels stand one below the other."""


def draw(artefact: Artefact, path: Path) -> None:
    """Draw a panel per line of a series artefact; of a matrix artefact its small multiples, or its first slice."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    if isinstance(artefact, SeriesArtefact):
        _series(figure, artefact)
    else:
        draw_matrix(figure, artefact)
    width = max(30, round(figure.get_figwidth() * 7.5))
    titles = [artefact.title] if artefact.section is None else [artefact.section, artefact.title]
    title = figure.suptitle("\n".join(textwrap.wrap(": ".join(titles), width)), fontsize="medium")
    title.set_parse_math(False)
    write_picture(path, figure)


def _series(figure: Any, artefact: SeriesArtefact) -> None:
    most = max((len(trace.names) for trace in artefact.series), default=0)
    columns = min(COLUMNS, len(artefact.series)) if most <= NARROW else 1
    rows = -(-len(artefact.series) // columns)
    figure.set_size_inches(max(3.0 * COLUMNS, 1.5 + 0.35 * most * columns), 0.8 + 2.2 * rows)
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False).flat
    for axes, trace in zip(grid, artefact.series, strict=False):
        axes.plot(trace.x, trace.y, "o" if trace.names else "o-" if len(trace.x) <= FEW else "-")
        axes.set_title(trace.label, fontsize="small")
        _places(axes, trace)
    for axes in list(grid)[len(artefact.series) :]:
        axes.set_axis_off()
    figure.supxlabel(artefact.x.title, fontsize="small")
    figure.supylabel(artefact.y.title, fontsize="small")


def _places(axes: Any, trace: Trace) -> None:
    """Mark every place along x that has a name, or the places of few points."""
    axes.set_xmargin(0.2 if len(trace.x) <= NARROW else 0.03)
    if trace.names:
        turned: dict[str, Any] = {} if len(trace.names) <= NARROW else {"rotation": 60, "ha": "right"}
        axes.set_xticks(trace.x, trace.names, fontsize="small", parse_math=False, **turned)
    elif len(trace.x) <= FEW:
        axes.set_xticks(trace.x, [f"{x:g}" for x in trace.x])
    axes.grid(axis="y", alpha=0.25)
