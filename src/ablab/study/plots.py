"""Pictures of a study: learning curves and depth-quality curves of all arms, as means over seeds."""

import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from ablab.store.records import Curve, Point
from ablab.study.ledger import Entry
from ablab.study.study import Study


def draw_learning(study: Study, entries: Mapping[str, Entry], path: Path) -> bool:
    """Draw validation loss and BLEU by step: a thin line per run, and a strong mean over the steps that all seeds have.

    Returns False, without a file, where no run has a record.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2)
    drawn = False
    for panel, key, title in zip(panels, ("loss", "bleu"), ("validation loss", "validation BLEU"), strict=True):
        for number, (row, arm) in enumerate(study.first_of_rows.items()):
            points: defaultdict[float, list[float]] = defaultdict(list)
            seeds = 0
            for validations in _validations(study, arm, entries):
                drawn, seeds = True, seeds + 1
                x, y = [v["step"] for v in validations], [v[key] for v in validations]
                panel.plot(x, y, color=f"C{number % 10}", alpha=0.3, linewidth=0.8)
                for step, value in zip(x, y, strict=True):
                    points[step].append(value)
            shared = sorted(step for step, values in points.items() if len(values) == seeds)
            means = [statistics.fmean(points[step]) for step in shared]
            panel.plot(shared, means, color=f"C{number % 10}", linewidth=1.8, label=row)
        panel.set_title(title)
        panel.set_xlabel("step")
        panel.grid(alpha=0.3)
    panels[1].legend(fontsize="small")
    if drawn:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
    return drawn


def draw_depths(study: Study, entries: Mapping[str, Entry], path: Path) -> bool:
    """Draw test BLEU by depth, a line per arm: means over seeds, of arms whose trained runs all have a curve.

    Returns False, without a file, where no arm has one.
    """
    from ablab.pruning.plot import draw, lines_of

    lines = []
    for arm in study.arms:
        cells = [cell for cell in study.cells if cell.arm == arm.name]
        done = [cell.planned for cell in cells if entries[cell.key].record is not None]
        curves = [curve for planned in done if (curve := planned.folder.curve(planned.curve_id)) is not None]
        if curves and len(curves) == len(done):
            lines += lines_of([_mean(curves)], arm.name)
    if not lines:
        return False
    draw(lines, f"{study.name}: means over seeds", path)
    return True


def _validations(study: Study, arm: str, entries: Mapping[str, Entry]) -> list[list[dict[str, float]]]:
    records = [entries[cell.key].record for cell in study.cells if cell.arm == arm]
    return [record.validations for record in records if record is not None]


def _mean(curves: list[Curve]) -> Curve:
    """Return the mean point by point. Depths agree over seeds, though a strategy may keep other layers under each."""
    points = [_mean_point(list(points)) for points in zip(*(curve.points for curve in curves), strict=True)]
    return curves[0].model_copy(update={"points": points})


def _mean_point(points: list[Point]) -> Point:
    keys = ("bleu", "chrf", "valid_loss", "valid_bleu", "sentences_per_second", "speed_ratio")
    return points[0].model_copy(update={key: statistics.fmean(getattr(p, key) for p in points) for key in keys})
