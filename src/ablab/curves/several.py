"""The curves of several runs on one picture and in one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ablab.curves.artefacts import draw, lines_of, rows, searched, write_csv
from ablab.errors import UserError
from ablab.record import Curve


class Pruned(NamedTuple):
    """A run's display name and its curves."""

    run_id: str
    name: str
    curves: Sequence[Curve]


def draw_several(runs: Sequence[Pruned], path: Path) -> Path:
    """Writes the picture, and the table beside it under the same name."""
    tests = {
        (curve.test_name, curve.settings["test"]["digest"], searched(curve)) for run in runs for curve in run.curves
    }
    if len(tests) > 1:
        raise UserError(f"runs={','.join(run.run_id for run in runs)}: their test sets differ; allowed: one test set")
    ((test_name, _, search),) = tests
    names = differing([run.name for run in runs])
    lines = [
        line
        for name, run in zip(names, runs, strict=True)
        for line in lines_of(run.curves, name if len(runs) > 1 else "")
    ]
    draw(lines, f"{test_name}, {search}", path)
    table = [{"run": run.run_id, "name": run.name, **row} for run in runs for row in rows(run.curves)]
    write_csv(path.with_suffix(".csv"), table)
    return path


def differing(names: Sequence[str]) -> list[str]:
    """Display names without the parts that all of them have."""
    parts = [name.split(",") for name in names]
    common = set(parts[0]).intersection(*parts)
    return [",".join(part for part in mine if part not in common) or "the defaults" for mine in parts]
