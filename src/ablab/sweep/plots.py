"""Pictures of a study, as means over seeds, and of a search: its history, or the Pareto front of two objectives."""

import statistics
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from ablab.fields import flatten
from ablab.files import COLOURS, write_picture
from ablab.search.settings import PARAMETERS, label_of
from ablab.search.trials import Trial, Trials, front_of
from ablab.store.records import Curve, Point, Record
from ablab.study.ledger import LedgerEntry
from ablab.study.looks import styles_of
from ablab.study.study import Study, marked, survivors

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
    figure = _figure(11.0, 4.6)
    wanted = dict([_loss_of(study, entries), (study.task.watched.key, study.task.watched.title)])
    panels = figure.subplots(1, len(wanted), squeeze=False)[0]
    looks, drawn = styles_of(list(study.arm_of_rows)), False
    for panel, (key, title) in zip(panels, wanted.items(), strict=True):
        for row, arm in study.arm_of_rows.items():
            look = looks[row].on_paper
            records = _records(study, arm, entries)
            drawn = drawn or bool(records)
            for record in records if len(study.cells) <= MOST_THIN else []:
                points = _points(record, key)
                panel.plot(list(points), list(points.values()), color=look["color"], alpha=0.3, linewidth=0.8)
            averaged = [record for record in records if record.state != "diverged"] or records
            steps, means = _mean_points([_points(record, key) for record in averaged])
            planned = len(study.cells_of(arm))
            diverged = sum(record.state == "diverged" for record in records)
            label = marked(study.label_of(row), survivors(len(averaged), planned, diverged))
            panel.plot(steps, means, **look, linewidth=1.8, label=label)
        panel.set_title(title)
        panel.set_xlabel("step")
        panel.set_ylabel(title)
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
        colours = {name: look.colour for name, look in styles_of(list(study.arm_of_rows)).items()}
        study.task.draw_curves(drawn, colours, f"{study.name}: means over seeds", path)
    return bool(drawn)


def _records(study: Study, arm: str, entries: Mapping[str, LedgerEntry]) -> list[Record]:
    return [record for cell in study.cells_of(arm) if (record := entries[cell.key].record) is not None]


def _points(record: Record, key: str) -> dict[float, float]:
    """Return the score by the step after which it is known. A task may tell a score at some steps only."""
    return {found["step"]: found[key] for found in record.validations if key in found}


def _mean_points(curves: Sequence[Mapping[float, float]]) -> tuple[list[float], list[float]]:
    """Return the steps that every curve has, and the mean at each."""
    shared = sorted(set.intersection(*map(set, curves))) if curves else []
    return shared, [statistics.fmean(curve[step] for curve in curves) for step in shared]


def _mean(curves: list[Curve]) -> Curve:
    """Return the mean point by point. Depths agree over seeds, though a strategy may keep other layers under each."""
    points = [_mean_point(list(points)) for points in zip(*(curve.points for curve in curves), strict=True)]
    return curves[0].model_copy(update={"points": points})


def _mean_point(points: list[Point]) -> Point:
    speeds = {key: statistics.fmean(getattr(p, key) for p in points) for key in ("sentences_per_second", "speed_ratio")}
    valid = {key: statistics.fmean(point.valid[key] for point in points) for key in points[0].valid}
    scores = {key: statistics.fmean(point.scores[key] for point in points) for key in points[0].scores}
    return points[0].model_copy(update={**speeds, "valid": valid, "scores": scores})


def draw_history(trials: Trials, all_trials: Sequence[Trial], title: str, path: Path) -> bool:
    """Draw the value of each finished trial, the best so far, and the last score of trials stopped early."""
    objective, name = trials.objectives[0], trials.names[0]

    def told(outcome: str) -> list[tuple[int, float]]:
        return [(one.number, one.values[0]) for one in all_trials if one.outcome == outcome and one.values is not None]

    done, stopped = told("finished"), told("stopped")
    out = [trial.number for trial in all_trials if trial.outcome in ("diverged", "failed")]
    if not done:
        return False
    figure = _figure(8.0, 4.8)
    panel = figure.subplots()
    panel.plot(*zip(*done, strict=True), "o", color=COLOURS[0], label="finished")
    numbers, values = zip(*done, strict=True)
    leading = list(accumulate(values, max if objective.higher_is_better else min))
    best = [*zip(numbers, leading, strict=True), (max(trial.number for trial in all_trials), leading[-1])]
    panel.step(*zip(*best, strict=True), where="post", color=COLOURS[1], linewidth=1.8, label="best so far")
    if stopped:
        panel.plot(*zip(*stopped, strict=True), "x", color="0.5", label="stopped early: its last validation")
    low, high = panel.get_ylim()
    if out:
        worst = low if objective.higher_is_better else high
        panel.plot(out, [worst] * len(out), "v", color=COLOURS[3], clip_on=False, label="diverged or failed")
        panel.set_ylim(low, high)
    panel.set_title(f"{title}: {name} by trial", fontsize="medium")
    panel.set_xlabel("trial")
    panel.set_ylabel(label_of(objective))
    panel.xaxis.get_major_locator().set_params(integer=True)
    return _save(figure, panel, path)


def draw_front(trials: Trials, all_trials: Sequence[Trial], title: str, path: Path) -> bool:
    """Draw every finished trial, and the Pareto front, whose trials are numbered."""
    best = sorted(front_of(all_trials, trials.objectives), key=lambda trial: trial.values or ())
    if not best:
        return False
    figure = _figure(8.0, 4.8)
    panel = figure.subplots()
    others = [one.values for one in all_trials if one.finished and one.values is not None and one not in best]
    if others:
        panel.plot(*zip(*others, strict=True), "o", color="0.6", label="dominated")
    points = [trial.values for trial in best if trial.values is not None]
    first, second = trials.objectives
    # A step curve: between two trials no point is known to be better than both.
    where = "pre" if first.higher_is_better else "post"
    panel.step(*zip(*points, strict=True), "o-", where=where, color=COLOURS[1], linewidth=1.2, label="front")
    for trial in best:
        panel.annotate(
            str(trial.number),
            trial.values,
            xytext=(5, 5),
            textcoords="offset points",
            fontsize="small",
            color=COLOURS[1],
        )
    for axis, objective in ((panel.xaxis, first), (panel.yaxis, second)):
        axis.set_label_text(f"{label_of(objective)}; {'larger' if objective.higher_is_better else 'smaller'} is better")
        if label_of(objective) == PARAMETERS.title:
            axis.set_major_formatter("{x:,.0f}")
    panel.set_title(f"{title}: {trials.names[0]} and {trials.names[1]}; numbers are trials", fontsize="medium")
    panel.margins(0.08)
    return _save(figure, panel, path)


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Any, panel: Any, path: Path) -> bool:
    panel.grid(alpha=0.3)
    figure.legend(fontsize="small", loc="outside lower center", ncols=4)  # where it hides no point
    write_picture(path, figure)
    return True
