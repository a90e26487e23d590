"""Pictures of artefacts, drawn to a file according to their kind."""

import textwrap
from pathlib import Path
from typing import Any

from ablab.store.artefacts import Artefact, MatrixArtefact, SeriesArtefact

COLUMNS = 3


def draw(artefact: Artefact, path: Path) -> None:
    """Draw a panel per line of a series artefact, or the first slice of a matrix artefact."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("\n".join(textwrap.wrap(artefact.title, 70)), fontsize="medium")
    if isinstance(artefact, SeriesArtefact):
        _series(figure, artefact)
    else:
        _matrix(figure, artefact)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _series(figure: Any, artefact: SeriesArtefact) -> None:
    rows = -(-len(artefact.series) // COLUMNS)
    figure.set_size_inches(9, 0.8 + 2.2 * rows)
    grid = figure.subplots(rows, COLUMNS, sharey=True, squeeze=False).flat
    for axes, trace in zip(grid, artefact.series, strict=False):
        axes.plot(trace.x, trace.y, "o" if trace.names else "o-")
        axes.set_title(trace.label, fontsize="small")
        axes.set_xticks(trace.x, trace.names or [f"{x:g}" for x in trace.x])
        axes.set_xmargin(0.2)
    for axes in list(grid)[len(artefact.series) :]:
        axes.set_axis_off()
    figure.supxlabel(artefact.x.title, fontsize="small")
    figure.supylabel(artefact.y.title, fontsize="small")


def _matrix(figure: Any, artefact: MatrixArtefact) -> None:
    columns, rows = artefact.x.labels, artefact.y.labels
    figure.set_size_inches(2.5 + 0.4 * len(columns), 1.8 + 0.32 * len(rows))
    axes = figure.add_subplot()
    values = artefact.slices[0].values
    image = axes.imshow(values, cmap="cividis", vmin=min(0, *map(min, values)), aspect="auto")
    turned = {"rotation": 60, "ha": "right"} if max(map(len, columns)) > 2 else {}
    axes.set_xticks(range(len(columns)), columns, **turned)
    axes.set_yticks(range(len(rows)), rows)
    axes.set(xlabel=artefact.x.title, ylabel=artefact.y.title)
    figure.colorbar(image, label=artefact.value)
