"""The comparison that ends a study: a table with missing runs marked, pictures, and a W&B run of its own."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ablab.errors import is_installed
from ablab.files import csv_text, no_formula, write_text
from ablab.store.index import index_of
from ablab.store.records import AnyEvaluation
from ablab.store.run_folder import RunFolder
from ablab.study.ledger import RESULTS, LedgerEntry, State
from ablab.study.study import Study
from ablab.sweep.plots import draw_learning, draw_pruned
from ablab.tasks.score import Score
from ablab.tasks.task import Task
from ablab.text import aligned, digits_beside, duration
from ablab.tracking.open import opened
from ablab.tracking.tracker import Tracker


class SummaryRow(NamedTuple):
    """An arm: its scores by name and seed, and the number of missing runs by state.

    No scores where a run diverged; `finished` counts the others.
    `mixed`: number of runs whose code, libraries, threads or device changed during training.
    """

    arm: str
    finished: int
    scores: Mapping[str, list[float]]
    seconds: list[float]
    parameters: int | None
    missing: Mapping[str, int]
    mixed: int


Read = Callable[[RunFolder, str], AnyEvaluation | None]
"""Reads an evaluation of a run, by its id."""


def rows_of(study: Study, entries: Mapping[str, LedgerEntry], read: Read = RunFolder.evaluation) -> list[SummaryRow]:
    """Return the rows in the order of the study; arms with the same whole models, evaluated alike, are one row."""
    return [_row(study, arm, row, entries, read) for row, arm in study.arm_of_rows.items()]


def _row(study: Study, arm: str, row: str, entries: Mapping[str, LedgerEntry], read: Read) -> SummaryRow:
    cells = study.cells_of(arm)
    found = [entries[cell.key] for cell in cells]
    records = [entry.record for entry in found if entry.record is not None and entry.state in RESULTS]
    finished = [cell for cell in cells if entries[cell.key].state is State.FINISHED]
    # A mean of the survivors would flatter the arm: where a run diverged, there is none.
    scored = [] if any(record.state == "diverged" for record in records) else finished
    results = [
        (record, read(cell.planned.folder, cell.planned.evaluation_id))
        for cell in scored
        if (record := entries[cell.key].record) is not None
    ]
    return SummaryRow(
        row,
        len(finished),
        {
            name: [value for result in results if (value := score.value(*result)) is not None]
            for name, score in shown(study.task).items()
        },
        [record.cost.seconds for record in records],
        records[0].cost.parameters or None if records else None,
        Counter(entry.state.value for entry in found if entry.state is not State.FINISHED),
        sum(entry.record is not None and entry.record.mixed is not None for entry in found),
    )


def _mean(values: list[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _counted(states: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {state}" for state, number in states.items())


def shown(task: Task) -> Mapping[str, Score]:
    """Return the scores that the comparison shows."""
    return {name: task.scores[name] for name in dict.fromkeys((task.primary, *task.listed))}


def figures(task: Task, row: SummaryRow) -> dict[str, str | int | float | None]:
    """Return the row's values for a file by the names of their columns; None where there is none."""
    of_scores: dict[str, float | None] = {}
    for name in shown(task):
        values = row.scores[name]
        of_scores[name] = _mean(values)
        if name == task.primary:
            of_scores[f"{name}_sd"] = statistics.stdev(values) if len(values) > 1 else None
    return {
        "arm": row.arm,
        "seeds": row.finished,
        **of_scores,
        "parameters": row.parameters,
        "seconds": _mean(row.seconds),
        "missing": _counted(row.missing),
        "mixed": row.mixed,
    }


def cells(task: Task, row: SummaryRow) -> dict[str, str]:
    """Return the row's cells on the console after the arm's name. A single seed has no standard deviation."""
    remarks = {**row.missing, **({"mixed": row.mixed} if row.mixed else {})}
    return {
        "seeds": f"{row.finished}",
        **{score.title: _spread(row.scores[name], digits_beside(score.digits)) for name, score in shown(task).items()},
        "parameters": "" if row.parameters is None else f"{row.parameters:,}",
        "run time": duration(statistics.fmean(row.seconds)) if row.seconds else "",
        "": _counted(remarks),
    }


def table_lines(study: Study, entries: Mapping[str, LedgerEntry]) -> list[str]:
    """Return the table as aligned lines."""
    index = index_of(study.outputs)
    rows = rows_of(study, entries, index.evaluation)
    index.keep()
    baselines = {study.rows[study.baseline_of(arm.name)] for arm in study.arms}
    lines = [["arm", *cells(study.task, rows[0])]]
    for row in rows:
        mark = " (baseline)" if row.arm in baselines and len(study.arms) > 1 else ""
        lines.append([f"{study.label_of(row.arm)}{mark}", *cells(study.task, row).values()])
    return list(aligned(lines, left=1))


def _spread(values: list[float], digits: int) -> str:
    if not values:
        return "-"
    mean = f"{statistics.fmean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


def open_study_tracker(study: Study, say: Callable[[str], None]) -> AbstractContextManager[Tracker]:
    """Open the tracker of the study and close it, on failure too. It sends nothing where the runs send nothing."""
    return opened(
        study.cells[0].planned.config.logger,
        study.folder,
        say,
        run_id=f"study-{study.digest}",
        name=study.name,
        config={
            "question": None if study.experiment is None else study.experiment.question,
            "seeds": list(study.seeds),
            "baseline": study.baseline,
            "runs": sorted({cell.planned.run_id for cell in study.cells}),
        },
        tags=["study"],
        group=study.name,
        job_type="study",
    )


COMPARISON = "arms.csv"
PICTURES: Mapping[str, Callable[[Study, Mapping[str, LedgerEntry], Path], bool]] = {
    "learning_curves": draw_learning,
    "depth_quality": partial(draw_pruned, of_heads=False),
    "heads_quality": partial(draw_pruned, of_heads=True),
}
"""Pictures by the stem of their file."""


def is_closed(study: Study, entries: Mapping[str, LedgerEntry]) -> bool:
    """Return whether arms.csv has the figures of these runs; other commands may have ended some, or arms are others."""
    path, index = study.folder / COMPARISON, index_of(study.outputs)
    rows = [figures(study.task, row) for row in rows_of(study, entries, index.evaluation)]
    return path.is_file() and path.read_bytes() == _as_csv(rows).encode()


def _as_csv(rows: Sequence[Mapping[str, object]]) -> str:
    return csv_text([list(rows[0]), *([no_formula(cell) for cell in row.values()] for row in rows)])


def close(study: Study, entries: Mapping[str, LedgerEntry], say: Callable[[str], None]) -> None:
    """Write arms.csv and the pictures, and send them to W&B; a picture without data is left out.

    What is written comes from the evaluations themselves, never from their outlines.
    """
    rows = [figures(study.task, row) for row in rows_of(study, entries)]
    pictures = PICTURES if is_installed("matplotlib") else {}
    drawn = [name for name, draw in pictures.items() if draw(study, entries, study.folder / f"{name}.png")]
    # The time serves as the step: it rises, so the comparison of a changed study follows the earlier one.
    moment = int(time.time())
    with open_study_tracker(study, say) as tracker:
        tracker.table(moment, "study/arms", list(rows[0]), [list(row.values()) for row in rows])
        for name in drawn:
            about = f"{study.name}: {name.replace('_', ' ')}"
            tracker.picture(moment, f"study/{name}", study.folder / f"{name}.png", about)
    write_text(study.folder / COMPARISON, _as_csv(rows))  # last: by it, `is_closed` knows that all is there
