"""What a search has found so far: tables, lines, files and data of its trials. Starts nothing."""

import json
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from rich.live import Live
from rich.text import Text

from ablab.config import compose_arm
from ablab.errors import UserError
from ablab.files import csv_text, write_json, write_text
from ablab.search.settings import direction_of, label_of, objectives_of
from ablab.search.storage import JOURNAL, open_storage
from ablab.search.trials import Trial, Trials, best_of, best_so_far, counts_of, front_of, of_asked, saved_line
from ablab.store.records import now
from ablab.study.ledger import State, entry_of
from ablab.study.search import BEST, REPORT, USUAL, SearchStudy
from ablab.sweep.launchers.jobs import View
from ablab.sweep.plots import draw_front, draw_history
from ablab.tasks.score import Scores
from ablab.text import aligned, how_many, program
from ablab.tracking.console import Console
from ablab.tracking.open import opened

TRIALS = "trials.csv"
MOST_ROWS = 10
FRESH = 3
"""Number of seeds for the winner of a search that names none."""


def objectives_in(search: SearchStudy) -> Scores:
    """Return the objectives of a search, in its order."""
    known = objectives_of(search.base.task)
    return {name: known[name] for name in search.settings.objectives}


def known_trials(search: SearchStudy) -> Trials | None:
    """Open existing trials for reading; None where no trial was ever begun."""
    if search.settings.storage is None and not (search.folder / JOURNAL).exists():
        return None
    try:
        storage = open_storage(search.settings.storage, search.folder)
        return Trials(search.study_name, search.space, objectives_in(search), storage, make=False)
    except KeyError:
        return None


def write_report(
    search: SearchStudy, trials: Trials, all_trials: Sequence[Trial], say: Callable[[str], None] | None
) -> None:
    """Write trials.csv, search.json, and history.png or pareto.png. In W&B they form a run of their own.

    `say`: is told what keeps W&B from taking it; None: nothing is sent.
    """
    columns, rows = _columns(trials), [_row(trials, trial, all_trials) for trial in all_trials]
    write_text(search.folder / TRIALS, csv_text([columns, *rows]))
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
    # A stopped trial's last score is not comparable with those of selected weights: it stays out of the column.
    values = (trial.finished and trial.values) or [None] * len(trials.names)
    chosen = [word.partition("=")[2] for word in trial.words] or [""] * len(trials.space.keys)
    best = trial.number in {other.number for other in front_of(all_trials, trials.objectives)}
    about = [trial.steps, trial.total_steps, trial.run_id, "yes" if best else "", trial.reason]
    return [trial.number, trial.outcome or "begun", *values, *chosen, *about]


def _content(search: SearchStudy, trials: Trials, all_trials: Sequence[Trial]) -> dict[str, Any]:
    leader = best_of(all_trials, trials.objectives)
    scores = {
        name: {
            "direction": direction_of(objective),
            "what": label_of(objective),
            "of": "the test set's decoding time; no test score" if name == "decoding_speed" else "validation",
        }
        for name, objective in zip(trials.names, trials.objectives, strict=True)
        if name != "parameters"
    }
    return {
        "digest": search.digest,
        "optuna_study": search.study_name,
        "written": now(),
        **_settings(search),
        "chosen_by": scores,
        "told": sum(trial.outcome is not None for trial in all_trials),
        "counts": counts_of(all_trials),
        "steps_saved": saved_line(all_trials),
        "best": None if leader is None else _plain_trial(trials, leader),
        "front": [_plain_trial(trials, trial) for trial in front_of(all_trials, trials.objectives)],
    }


def _settings(search: SearchStudy) -> dict[str, Any]:
    named = {"trials", "sampler", "stopping", "objectives", "seed", "training_seed"}
    return {
        "space": search.space.plain,
        "common": list(search.common),
        **search.settings.model_dump(include=named),
    }


def _plain_trial(trials: Trials, trial: Trial) -> dict[str, Any]:
    """Return a trial as data."""
    values = dict(zip(trials.names, trial.values or (), strict=False))
    return {"trial": trial.number, "words": list(trial.words), "values": values, "run_id": trial.run_id}


def closing_lines(
    search: SearchStudy, trials: Trials, all_trials: Sequence[Trial], *, interrupted: bool
) -> Iterator[str]:
    """Yield the last lines that the command prints."""
    yield from table_lines(trials, all_trials)
    yield ""
    asked = search.settings.trials
    begun = how_many(asked, "trial") if len(all_trials) <= asked else of_asked(len(all_trials), asked).rstrip(",")
    yield f"{begun}: {counts_of(all_trials) or 'none begun'}"
    if (saved := saved_line(all_trials)) is not None:
        yield saved
    leader = best_of(all_trials, trials.objectives)
    yield f"Results: {search.folder}"
    if interrupted:
        yield "Stopped; the same line, typed again, continues from there"
    elif left := left_of(search, all_trials):
        yield f"{how_many(left, 'trial')} left: the same line, typed again, goes on"
    elif leader is None:
        yield "No trial finished; Next: another space, or more trials"
    elif search.file is None:
        yield f"Next: {_next_line(search, leader)}"
    else:
        one = "" if len(trials.names) == 1 else f" ({BEST}: by {trials.names[0]}, the first objective)"
        yield f"Next come {USUAL} and {BEST} on fresh seeds{one}"


def _next_line(search: SearchStudy, leader: Trial) -> str:
    """Return the line that runs the winner on seeds that had no part in choosing it."""
    first = max(101, search.settings.training_seed + 1)
    seeds = ",".join(str(first + number) for number in range(FRESH))
    words = (*search.common, *leader.words)
    unread = compose_arm(words).unread
    return f"{program('train')} -m {shlex.join(word for word in words if word not in unread)} seed={seeds}"


def table_lines(trials: Trials, all_trials: Sequence[Trial]) -> Iterator[str]:
    """Yield a table of finished trials: the best by one objective, or the Pareto front of several."""
    if len(trials.names) > 1:
        shown = front_of(all_trials, trials.objectives)
    else:
        shown = [trial for trial in all_trials if trial.finished and trial.values is not None]
    sign = -1 if trials.objectives[0].higher_is_better else 1
    shown = sorted(shown, key=lambda trial: (sign * (trial.values or (0.0,))[0], trial.number))
    if not shown:
        return
    rows = [["trial", *trials.space.keys, *trials.names, "run"]]
    for trial in shown[:MOST_ROWS]:
        chosen = [word.partition("=")[2] for word in trial.words]
        values = [f"{value:,.{o.digits}f}" for o, value in zip(trials.objectives, trial.values or (), strict=True)]
        rows.append([str(trial.number), *chosen, *values, trial.run_id or ""])
    yield from aligned(rows, left=0)
    if len(shown) > MOST_ROWS:
        yield f"and {len(shown) - MOST_ROWS} more in {TRIALS}"


def _track(
    search: SearchStudy,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    drawn: str | None,
    say: Callable[[str], None],
) -> None:
    moment = int(time.time())
    with opened(
        search.base.config.logger,
        # Not the folder of the study that follows: a run of W&B is known by its folder, and these are two.
        search.folder.with_name(f"{search.folder.name}-search"),
        say,
        run_id=f"search-{search.digest}",
        name=f"{search.name}: search",
        config=_settings(search),
        tags=["search"],
        group=search.name,
        job_type="search",
    ) as tracker:
        tracker.table(moment, "search/trials", columns, rows)
        if drawn is not None:
            tracker.picture(moment, f"search/{drawn}", search.folder / f"{drawn}.png", f"{search.name}: {drawn}")


REFRESH = 1.0


def about_line(search: SearchStudy) -> str:
    """Return what a search does, `lr: 20 trials (tpe), chosen on validation by valid_loss`."""
    settings = search.settings
    rule = "" if settings.stopping == "none" else f", stopping by {settings.stopping}"
    chosen = ", ".join(settings.objectives)
    asked = how_many(settings.trials, "trial")
    return f"{search.name}: {asked} ({settings.sampler}{rule}), chosen on validation by {chosen}"


def search_lines(search: SearchStudy, words: Sequence[str]) -> Iterator[str]:
    """Yield the state as text."""
    yield about_line(search)
    rows = [["key", "values"], *([key, _values(values)] for key, values in search.space.plain.items())]
    yield from aligned(rows, left=2)
    yield ""
    trials, all_trials = _known(search)
    if trials is not None and any(trial.finished for trial in all_trials):
        yield from table_lines(trials, all_trials)
        yield ""
    yield state_line(search, trials, all_trials, View())
    if (saved := saved_line(all_trials)) is not None:
        yield saved
    if left_of(search, all_trials):
        yield f"Next: {program('train')} -m {shlex.join(words)}"
    yield f"Results: {search.folder}{'' if search.folder.exists() else ' (none yet)'}"


def state_line(search: SearchStudy, trials: Trials | None, all_trials: Sequence[Trial], view: View) -> str:
    """Return `8 of 20 trials ended: 6 finished, 2 stopped early; 1 running, 11 left; best so far ...`."""
    done = [trial for trial in all_trials if trial.outcome is not None]
    states = _states(search, all_trials, view)
    interrupted = len(all_trials) - len(done) - states[State.RUNNING] - states[State.QUEUED]
    left = max(0, search.settings.trials - len(all_trials))
    open_ones = [(states[State.RUNNING], "running"), (states[State.QUEUED], "queued"), (interrupted, "interrupted")]
    parts = [*open_ones, (left, "left")]
    line = f"{of_asked(len(done), search.settings.trials)} ended" + (f": {counts_of(done)}" if done else "")
    line += "".join(f"; {number} {name}" for number, name in parts if number)
    best = None if trials is None else best_so_far(all_trials, trials.objectives, trials.names[0])
    return line if best is None else f"{line}; {best}"


def search_json(search: SearchStudy) -> dict[str, Any]:
    """Return the state as data, for programs."""
    trials, all_trials = _known(search)
    leader = None if trials is None else best_of(all_trials, trials.objectives)
    plain = [] if trials is None else [_plain_trial(trials, trial) for trial in all_trials]
    return {
        "search": search.name,
        "optuna_study": search.study_name,
        "space": search.space.plain,
        **search.settings.model_dump(exclude={"storage", "space"}),
        "told": sum(trial.outcome is not None for trial in all_trials),
        "running": _states(search, all_trials, View())[State.RUNNING],
        "left": left_of(search, all_trials),
        "best": None if leader is None else plain[leader.number],
        "front": [] if trials is None else [plain[trial.number] for trial in front_of(all_trials, trials.objectives)],
        "trials": [{**one, "outcome": trial.outcome or "begun"} for one, trial in zip(plain, all_trials, strict=True)],
    }


def _known(search: SearchStudy) -> tuple[Trials | None, list[Trial]]:
    trials = known_trials(search)
    return trials, [] if trials is None else trials.all()


def show_search(search: SearchStudy, words: Sequence[str], console: Console, *, watch: bool, as_json: bool) -> None:
    """Print the state, after watching until all trials have ended if `watch`."""
    if watch:
        _watch(search, console)
    if as_json:
        print(json.dumps(search_json(search), indent=1))  # noqa: T201
        return
    console.say_all(search_lines(search, words))


def _watch(search: SearchStudy, console: Console) -> None:
    view = View()
    with Live(Text(), console=console.rich, refresh_per_second=2, transient=True) as live:
        while True:
            trials, all_trials = _known(search)
            live.update(Text(state_line(search, trials, all_trials, view)))
            if not left_of(search, all_trials):
                return
            try:
                time.sleep(REFRESH)
            except KeyboardInterrupt:
                return


def left_of(search: SearchStudy, all_trials: Sequence[Trial]) -> int:
    """Return the number of trials that have not ended, whether or not they have begun."""
    return max(0, search.settings.trials - sum(trial.outcome is not None for trial in all_trials))


def _states(search: SearchStudy, all_trials: Sequence[Trial], view: View) -> Counter[State]:
    """Count the states of the runs of trials without an outcome."""
    entries = {}
    for trial in all_trials:
        if trial.outcome is None:
            with suppress(UserError):
                entries[str(trial.number)] = entry_of(search.cell(trial.number, trial.words))
    return Counter(entry.state for entry in view.of(entries).values())


def _values(values: Any) -> str:
    if isinstance(values, list):
        return ", ".join(values)
    kind = (
        " by its logarithm" if values["log"] else "" if values["step"] is None else f" in steps of {values['step']:g}"
    )
    return f"{values['low']:g} to {values['high']:g}{kind}"
