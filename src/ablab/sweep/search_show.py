"""The state of a search for the verb `study`: its space, its trials so far and those running. Starts nothing."""

import json
import shlex
import time
from collections.abc import Iterator, Sequence
from typing import Any

from rich.live import Live
from rich.text import Text

from ablab.config import compose
from ablab.console import Console, aligned
from ablab.errors import UserError
from ablab.plan import plan
from ablab.search.trials import Trial, Trials, best_of, best_so_far, count, front_of, saved_line
from ablab.study.ledger import State, entry_of
from ablab.study.search import SearchStudy
from ablab.study.study import Cell
from ablab.sweep.search_report import plain_trial, table_lines
from ablab.sweep.search_sweep import known_trials
from ablab.text import program

REFRESH = 1.0


def search_lines(search: SearchStudy, words: Sequence[str]) -> Iterator[str]:
    """Yield the state as text."""
    settings = search.settings
    rule = "" if settings.stopping == "none" else f", stopping by {settings.stopping}"
    chosen = ", ".join(settings.objectives)
    yield f"{search.name}: {settings.trials} trials ({settings.sampler}{rule}), chosen on validation by {chosen}"
    rows = [["key", "values"], *([key, _values(values)] for key, values in search.space.plain.items())]
    yield from (line.rstrip() for line in aligned(rows, left=2))
    yield ""
    trials = known_trials(search)
    all_trials = [] if trials is None else trials.all()
    if trials is not None and any(trial.finished for trial in all_trials):
        yield from table_lines(trials, all_trials)
        yield ""
    yield state_line(search, trials, all_trials)
    if (saved := saved_line(all_trials)) is not None:
        yield saved
    if _left(search, all_trials):
        yield f"Next: {program('train')} -m {' '.join(map(shlex.quote, words))}"
    yield f"Results: {search.folder}"


def state_line(search: SearchStudy, trials: Trials | None, all_trials: Sequence[Trial]) -> str:
    """Return `8 of 20 trials ended: 6 finished, 2 stopped early; 1 running, 11 left; best so far ...`."""
    done = [trial for trial in all_trials if trial.outcome is not None]
    running = sum(_is_running(search, trial) for trial in all_trials if trial.outcome is None)
    interrupted = len(all_trials) - len(done) - running
    left = max(0, search.settings.trials - len(all_trials))
    parts = [(running, "running"), (interrupted, "interrupted"), (left, "left")]
    line = f"{len(done)} of {search.settings.trials} trials ended" + (f": {count(done)}" if done else "")
    line += "".join(f"; {number} {name}" for number, name in parts if number)
    best = None if trials is None else best_so_far(all_trials, trials.objectives, trials.names[0])
    return line if best is None else f"{line}; {best}"


def search_json(search: SearchStudy) -> dict[str, Any]:
    """Return the state as data, for programs."""
    trials = known_trials(search)
    all_trials = [] if trials is None else trials.all()
    leader = None if trials is None else best_of(all_trials, trials.objectives)
    return {
        "search": search.name,
        "optuna_study": search.study_name,
        "space": search.space.plain,
        **search.settings.model_dump(exclude={"storage", "space"}),
        "told": sum(trial.outcome is not None for trial in all_trials),
        "running": sum(trial.outcome is None and _is_running(search, trial) for trial in all_trials),
        "left": _left(search, all_trials),
        "best": None if leader is None or trials is None else plain_trial(trials, leader),
        "front": []
        if trials is None
        else [plain_trial(trials, trial) for trial in front_of(all_trials, trials.objectives)],
        "trials": []
        if trials is None
        else [{**plain_trial(trials, t), "outcome": t.outcome or "begun"} for t in all_trials],
    }


def show_search(search: SearchStudy, words: Sequence[str], console: Console, *, watch: bool, as_json: bool) -> None:
    """Print the state, after watching until all trials have ended if `watch`."""
    if watch:
        _watch(search, console)
    if as_json:
        print(json.dumps(search_json(search), indent=1))  # noqa: T201
        return
    for line in search_lines(search, words):
        console.say(line)


def _watch(search: SearchStudy, console: Console) -> None:
    with Live(Text(), console=console.rich, refresh_per_second=2, transient=True) as live:
        while True:
            trials = known_trials(search)
            all_trials = [] if trials is None else trials.all()
            live.update(Text(state_line(search, trials, all_trials)))
            if not _left(search, all_trials):
                return
            try:
                time.sleep(REFRESH)
            except KeyboardInterrupt:
                return


def _left(search: SearchStudy, all_trials: Sequence[Trial]) -> int:
    """Return the number of trials that have not ended, whether or not they have begun."""
    return max(0, search.settings.trials - sum(trial.outcome is not None for trial in all_trials))


def _is_running(search: SearchStudy, trial: Trial) -> bool:
    try:
        words = search.words(trial.number, trial.words)
        planned = plan(compose(words))
    except UserError:
        return False
    return entry_of(Cell(f"trial {trial.number}", planned.config.seed, words, planned)).state is State.RUNNING


def _values(values: Any) -> str:
    if isinstance(values, list):
        return ", ".join(values)
    kind = (
        " by its logarithm" if values["log"] else "" if values["step"] is None else f" in steps of {values['step']:g}"
    )
    return f"{values['low']:g} to {values['high']:g}{kind}"
