"""Pictures of a study: learning curves and pruning curves of all arms, as means over seeds."""

import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from ablab.fields import flatten
from ablab.store.records import Curve, Point, Record
from ablab.study.ledger import LedgerEntry
from ablab.study.study import Study, marked, survivors
from ablab.text import write_picture

MOST_NAMED = 16
"""Arms that a legend has room for."""

MOST_THIN = 400
"""Runs that have a line of their own: of more, none could be seen."""


def draw_learning(study: Study, entries: Mapping[str, LedgerEntry], path: Path) -> bool:
    """Draw validation scores by step: a thin line per run, and a strong mean over the steps that all seeds have.

    The loss is one on which arms can be compared, if their runs have it. Where runs diverged, the mean is that of the
    others, and its name says so.
    Returns False, without a file, where no run has a record.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    wanted = dict([_loss_of(study, entries), (study.task.watched.key, study.task.watched.title)])
    panels = figure.subplots(1, len(wanted), squeeze=False)[0]
    drawn = False
    for panel, (key, title) in zip(panels, wanted.items(), strict=True):
        for number, (row, arm) in enumerate(study.arm_of_rows.items()):
            colour = f"C{number % 10}"
            records = _records(study, arm, entries)
            drawn = drawn or bool(records)
            for record in records if len(study.cells) <= MOST_THIN else []:
                panel.plot(*_points(record, key), color=colour, alpha=0.3, linewidth=0.8)
            averaged = [record for record in records if record.state != "diverged"] or records
            steps, means = _mean_points([_points(record, key) for record in averaged])
            planned = len(study.cells_of(arm))
            diverged = sum(record.state == "diverged" for record in records)
            label = marked(row, survivors(len(averaged), planned, diverged))
            panel.plot(steps, means, color=colour, linewidth=1.8, label=label)
        panel.set_title(title)
        panel.set_xlabel("step")
        panel.grid(alpha=0.3)
    if len(study.arm_of_rows) <= MOST_NAMED:
        panels[-1].legend(fontsize="small", loc="lower right")
    else:
        figure.suptitle(f"{len(study.arm_of_rows)} arms: the report names each", fontsize="small")
    if drawn:
        write_picture(path, figure)
    return drawn


def _loss_of(study: Study, entries: Mapping[str, LedgerEntry]) -> tuple[str, str]:
    """Return the loss by which arms can be compared: its key in validations, and its title."""
    task = study.task
    first = {cell.arm: flatten(cell.planned.recipe) for cell in study.cells if cell.seed == study.cells[0].seed}
    recipes, loss = list(first.values()), task.scores[task.loss]
    if loss.unlike(recipes) is None:
        return loss.key, loss.title
    records = [record for arm in study.arms for record in _records(study, arm.name, entries)]
    for key, score in task.validated.items():
        is_loss = not score.higher_is_better and score.unlike(recipes) is None
        if is_loss and all(key in validation for record in records for validation in record.validations):
            return key, score.title
    return loss.key, f"{loss.title}, in each arm's own measure"


def draw_pruned(study: Study, entries: Mapping[str, LedgerEntry], path: Path, *, of_heads: bool) -> bool:
    """Draw the test score by depth or heads, a line per arm: means over seeds, where all trained runs have a curve.

    Returns False, without a file, where no arm has one.
    """
    drawn: dict[str, Curve] = {}
    for arm in study.arms:
        cells = study.cells_of(arm.name)
        done = [cell.planned for cell in cells if entries[cell.key].record is not None]
        curves = [curve for planned in done if (curve := planned.folder.curve(planned.curve_id)) is not None]
        if curves and len(curves) == len(done) and curves[0].of_heads == of_heads:
            drawn[arm.name] = _mean(curves)
    if drawn:
        study.task.draw_curves(drawn, f"{study.name}: means over seeds", path)
    return bool(drawn)


def _records(study: Study, arm: str, entries: Mapping[str, LedgerEntry]) -> list[Record]:
    return [record for cell in study.cells_of(arm) if (record := entries[cell.key].record) is not None]


def _points(record: Record, key: str) -> tuple[list[float], list[float]]:
    """Return steps, and the validation scores after them."""
    return [found["step"] for found in record.validations], [found[key] for found in record.validations]


def _mean_points(curves: list[tuple[list[float], list[float]]]) -> tuple[list[float], list[float]]:
    """Return the mean at each step that every curve has."""
    at: defaultdict[float, list[float]] = defaultdict(list)
    for step, value in (point for curve in curves for point in zip(*curve, strict=True)):
        at[step].append(value)
    shared = sorted(step for step, values in at.items() if len(values) == len(curves))
    return shared, [statistics.fmean(at[step]) for step in shared]


def _mean(curves: list[Curve]) -> Curve:
    """Return the mean point by point. Depths agree over seeds, though a strategy may keep other layers under each."""
    points = [_mean_point(list(points)) for points in zip(*(curve.points for curve in curves), strict=True)]
    return curves[0].model_copy(update={"points": points})


def _mean_point(points: list[Point]) -> Point:
    speeds = {key: statistics.fmean(getattr(p, key) for p in points) for key in ("sentences_per_second", "speed_ratio")}
    valid = {key: statistics.fmean(point.valid[key] for point in points) for key in points[0].valid}
    scores = {key: statistics.fmean(point.scores[key] for point in points) for key in points[0].scores}
    return points[0].model_copy(update={**speeds, "valid": valid, "scores": scores})
