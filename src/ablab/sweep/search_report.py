"""Results of a search: a table of the best trials, files and a picture of all, and the line to type next."""

import csv
import io
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ablab.console import aligned
from ablab.files import write_json, write_text
from ablab.search.trials import Trial, Trials, best_of, count, front_of, saved_line
from ablab.store.records import now
from ablab.study.search import BEST, REPORT, USUAL, SearchStudy
from ablab.sweep.search_plots import draw_front, draw_history
from ablab.text import program
from ablab.tracking.open import opened

TRIALS = "trials.csv"
MOST_ROWS = 10
FRESH = 3
"""Number of seeds for the winner of a search that names none."""


def write_report(
    search: SearchStudy, trials: Trials, all_trials: Sequence[Trial], say: Callable[[str], None] | None
) -> None:
    """Write trials.csv, search.json, and history.png or pareto.png. In W&B they form a run of their own.

    `say`: is told what keeps W&B from taking it; None: nothing is sent.
    """
    columns, rows = _columns(trials), [_row(trials, trial, all_trials) for trial in all_trials]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    write_text(search.folder / TRIALS, text.getvalue())
    write_json(search.folder / REPORT, _content(search, trials, all_trials))
    picture = {1: ("history", draw_history), 2: ("pareto", draw_front)}.get(len(trials.names))
    drawn = None
    if picture is not None:
        path = search.folder / f"{picture[0]}.png"
        drawn = picture[0] if picture[1](trials, all_trials, search.name, path) else None
    if say is not None:
        _track(search, columns, rows, drawn, say)


def _columns(trials: Trials) -> list[str]:
    return ["trial", "outcome", *trials.names, *trials.space.keys, "steps", "total_steps", "run_id", "front", "reason"]


def _row(trials: Trials, trial: Trial, all_trials: Sequence[Trial]) -> list[Any]:
    values = list(trial.values) if trial.values is not None else [None] * len(trials.names)
    # A stopped trial's last score is not comparable with those of selected weights: it stays out of the column.
    values = values if trial.finished else [None] * len(trials.names)
    chosen = [word.partition("=")[2] for word in trial.words] or [""] * len(trials.space.keys)
    best = trial.number in {other.number for other in front_of(all_trials, trials.objectives)}
    about = [trial.steps, trial.total_steps, trial.run_id, "yes" if best else "", trial.reason]
    return [trial.number, trial.outcome or "begun", *values, *chosen, *about]


def _content(search: SearchStudy, trials: Trials, all_trials: Sequence[Trial]) -> dict[str, Any]:
    leader = best_of(all_trials, trials.objectives)
    scores = {
        name: {
            "direction": objective.direction,
            "what": objective.label,
            "of": "the test set's decoding time; no test score" if name == "decoding_speed" else "validation",
        }
        for name, objective in zip(trials.names, trials.objectives, strict=True)
        if name != "parameters"
    }
    return {
        "digest": search.digest,
        "optuna_study": search.study_name,
        "written": now(),
        "space": search.space.plain,
        "common": list(search.common),
        **search.settings.model_dump(include={"trials", "sampler", "stopping", "objectives", "seed", "training_seed"}),
        "chosen_by": scores,
        "told": sum(trial.outcome is not None for trial in all_trials),
        "counts": count(all_trials),
        "steps_saved": saved_line(all_trials),
        "best": None if leader is None else plain_trial(trials, leader),
        "front": [plain_trial(trials, trial) for trial in front_of(all_trials, trials.objectives)],
    }


def plain_trial(trials: Trials, trial: Trial) -> dict[str, Any]:
    """Return a trial as data."""
    values = dict(zip(trials.names, trial.values or (), strict=False))
    return {"trial": trial.number, "words": list(trial.words), "values": values, "run_id": trial.run_id}


def closing_lines(
    search: SearchStudy, trials: Trials, all_trials: Sequence[Trial], *, interrupted: bool
) -> Iterator[str]:
    """Yield the last lines that the command prints."""
    yield from table_lines(trials, all_trials)
    yield ""
    yield f"{search.settings.trials} trials: {count(all_trials) or 'none begun'}"
    if (saved := saved_line(all_trials)) is not None:
        yield saved
    leader = best_of(all_trials, trials.objectives)
    yield f"Results: {search.folder}"
    if interrupted:
        yield "Stopped; the same line, typed again, continues from there"
    elif leader is None:
        yield "No trial finished; Next: another space, or more trials"
    elif search.experiment is None:
        yield f"Next: {_next_line(search, leader)}"
    else:
        one = "" if len(trials.names) == 1 else f" ({BEST}: by {trials.names[0]}, the first objective)"
        yield f"Next come {USUAL} and {BEST} on fresh seeds{one}"


def _next_line(search: SearchStudy, leader: Trial) -> str:
    """Return the line that runs the winner on seeds that had no part in choosing it."""
    first = max(101, search.settings.training_seed + 1)
    seeds = ",".join(str(first + number) for number in range(FRESH))
    words = [shlex.quote(word) for word in (*search.common, *leader.words)]
    return f"{program('train')} -m {' '.join(words)} seed={seeds}"


def table_lines(trials: Trials, all_trials: Sequence[Trial]) -> Iterator[str]:
    """Yield a table of finished trials: the best by one objective, or the Pareto front of several."""
    if len(trials.names) > 1:
        shown = front_of(all_trials, trials.objectives)
    else:
        shown = [trial for trial in all_trials if trial.finished and trial.values is not None]
    sign = -1 if trials.objectives[0].direction == "maximize" else 1
    shown = sorted(shown, key=lambda trial: (sign * (trial.values or (0.0,))[0], trial.number))
    if not shown:
        return
    rows = [["trial", *trials.space.keys, *trials.names, "run"]]
    for trial in shown[:MOST_ROWS]:
        chosen = [word.partition("=")[2] for word in trial.words]
        values = [o.written(value) for o, value in zip(trials.objectives, trial.values or (), strict=True)]
        rows.append([str(trial.number), *chosen, *values, trial.run_id or ""])
    yield from (line.rstrip() for line in aligned(rows, left=0))
    if len(shown) > MOST_ROWS:
        yield f"and {len(shown) - MOST_ROWS} more in {TRIALS}"


def _track(
    search: SearchStudy,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    drawn: str | None,
    say: Callable[[str], None],
) -> None:
    about = search.settings.model_dump(include={"trials", "sampler", "stopping", "objectives", "seed", "training_seed"})
    moment = int(time.time())
    with opened(
        search.base.config.logger,
        # Not the folder of the study that follows: a run of W&B is known by its folder, and these are two.
        search.folder.with_name(f"{search.folder.name}-search"),
        say,
        run_id=f"search-{search.digest}",
        name=f"{search.name}: search",
        config={**about, "space": search.space.plain, "common": list(search.common)},
        tags=["search"],
        group=search.name,
        job_type="search",
    ) as tracker:
        tracker.table(moment, "search/trials", columns, rows)
        if drawn is not None:
            tracker.picture(moment, f"search/{drawn}", search.folder / f"{drawn}.png", f"{search.name}: {drawn}")
