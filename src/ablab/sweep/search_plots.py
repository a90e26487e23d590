"""Pictures of a search: the history of its best value, or the Pareto front of two objectives."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ablab.search.trials import Trial, Trials, front_of
from ablab.text import write_picture


def draw_history(trials: Trials, all_trials: Sequence[Trial], title: str, path: Path) -> bool:
    """Draw the value of each finished trial, the best so far, and the last score of trials stopped early."""
    objective, name = trials.objectives[0], trials.names[0]
    done = [(trial.number, trial.values[0]) for trial in all_trials if trial.finished and trial.values is not None]
    stopped = [
        (trial.number, trial.values[0])
        for trial in all_trials
        if trial.outcome == "stopped" and trial.values is not None
    ]
    out = [trial.number for trial in all_trials if trial.outcome in ("diverged", "failed")]
    if not done:
        return False
    figure, panel = _figure()
    panel.plot(*zip(*done, strict=True), "o", color="C0", label="finished")
    best, leading = [], done[0][1]
    for number, value in done:
        leading = value if objective.better(value, leading) else leading
        best.append((number, leading))
    best.append((max(trial.number for trial in all_trials), leading))
    panel.step(*zip(*best, strict=True), where="post", color="C3", linewidth=1.8, label="best so far")
    if stopped:
        panel.plot(*zip(*stopped, strict=True), "x", color="0.5", label="stopped early: its last validation")
    low, high = panel.get_ylim()
    if out:
        worst = low if objective.direction == "maximize" else high
        panel.plot(out, [worst] * len(out), "v", color="C1", clip_on=False, label="diverged or failed")
        panel.set_ylim(low, high)
    panel.set_title(f"{title}: {name} by trial", fontsize="medium")
    panel.set_xlabel("trial")
    panel.set_ylabel(objective.label)
    panel.xaxis.get_major_locator().set_params(integer=True)
    return _save(figure, panel, path)


def draw_front(trials: Trials, all_trials: Sequence[Trial], title: str, path: Path) -> bool:
    """Draw every finished trial, and the Pareto front, whose trials are numbered."""
    done = [trial for trial in all_trials if trial.finished and trial.values is not None]
    if not done:
        return False
    best = sorted(front_of(all_trials, trials.objectives), key=lambda trial: trial.values or ())
    figure, panel = _figure()
    others = [trial.values for trial in done if trial not in best and trial.values is not None]
    if others:
        panel.plot(*zip(*others, strict=True), "o", color="0.6", label="dominated")
    points = [trial.values for trial in best if trial.values is not None]
    first, second = trials.objectives
    # A step curve: between two trials no point is known to be better than both.
    where = "post" if first.direction == "minimize" else "pre"
    panel.step(*zip(*points, strict=True), "o-", where=where, color="C3", linewidth=1.2, label="front")
    for trial in best:
        panel.annotate(
            str(trial.number), trial.values, xytext=(5, 5), textcoords="offset points", fontsize="small", color="C3"
        )
    arrow = {"minimize": "smaller is better", "maximize": "larger is better"}
    panel.set_xlabel(f"{first.label}; {arrow[first.direction]}")
    panel.set_ylabel(f"{second.label}; {arrow[second.direction]}")
    for axis, objective in ((panel.xaxis, first), (panel.yaxis, second)):
        if objective.label == "parameters":
            axis.set_major_formatter("{x:,.0f}")
    panel.set_title(f"{title}: {trials.names[0]} and {trials.names[1]}; numbers are trials", fontsize="medium")
    panel.margins(0.08)
    return _save(figure, panel, path)


def _figure() -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def _save(figure: Any, panel: Any, path: Path) -> bool:
    panel.grid(alpha=0.3)
    figure.legend(fontsize="small", loc="outside lower center", ncols=4)  # where it hides no point
    write_picture(path, figure)
    return True
