"""The curves of several runs on one picture and in one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ablab.curves.artefacts import rows, searched, write_csv
from ablab.curves.picture import draw, lines_of
from ablab.identity import distinct
from ablab.store.records import Curve


class Pruned(NamedTuple):
    """A run's display name and its curves."""

    run_id: str
    name: str
    curves: Sequence[Curve]


def draw_several(runs: Sequence[Pruned], path: Path) -> Path:
    """Writes the picture, and the table beside it under the same name. All curves are of one test set and search."""
    first = runs[0].curves[0]
    names = distinct([run.name for run in runs])
    lines = [
        line
        for name, run in zip(names, runs, strict=True)
        for line in lines_of(run.curves, name if len(runs) > 1 else "")
    ]
    draw(lines, f"{first.test_name}, {searched(first)}", path)
    table = [{"run": run.run_id, "name": run.name, **row} for run in runs for row in rows(run.curves)]
    write_csv(path.with_suffix(".csv"), table)
    return path
