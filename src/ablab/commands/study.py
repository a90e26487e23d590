"""The `study` command: the plan and state of a study, while it runs or later; without torch."""

import json
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from ablab.commands.options import StudyOptions
from ablab.errors import UserError
from ablab.fields import as_typed, flatten
from ablab.judge.ends import given_up
from ablab.judge.prospects import prospects
from ablab.store.chain import Chain
from ablab.store.run_folder import RunFolder
from ablab.study.definition import define
from ablab.study.extending import close, closings, extensions
from ablab.study.ledger import RESULTS, LedgerEntry, State, count, departed
from ablab.study.search import SearchStudy, define_search
from ablab.study.study import Study
from ablab.sweep.check import NO_ARMS, Tried, check, tried
from ablab.sweep.hydra import check_hydra, hydra_words
from ablab.sweep.launchers.jobs import cancel
from ablab.sweep.progress import NEVER_AGAIN, Board, as_json, going_on, summary
from ablab.sweep.search_report import known_trials, show_search
from ablab.sweep.summary import table_lines
from ablab.sweep.sweep import Policy, board_of
from ablab.tasks.identity import condition_id, differing
from ablab.tasks.verbs import split_words
from ablab.text import aligned, duration, how_many, program
from ablab.tracking.console import Console

REFRESH = 1.0


def study(arguments: Sequence[str]) -> int:
    """Show, check, watch or cancel a study."""
    options, rest = split_words(StudyOptions, arguments)
    of_hydra = hydra_words(rest)
    words = tuple(word for word in rest if word not in of_hydra)
    as_json_alone = options.format == "json"
    if as_json_alone and (options.cancel or options.close is not None):
        raise UserError("format=json: allowed without cancel= and close=, which tell in words what they did")
    console = Console(stderr=as_json_alone)
    search = define_search(words, check_hydra(of_hydra, words) if of_hydra else None)
    if options.cancel:
        if options.check or options.watch or options.close is not None:
            raise UserError("cancel=true: allowed without check=, watch= and close=")
        return _cancel(search.name if search else define(words).name, _folders(search, words), console)
    if search is not None:
        if options.check:
            raise UserError(NO_ARMS)
        if options.close is not None and (search.file is None or search.winner() is None):
            raise UserError(f"close={options.close}: a search has no study to close before it has a winner")
        show_search(search, rest, console, watch=options.watch, as_json=as_json_alone)
        if as_json_alone or search.file is None or search.winner() is None:
            return 0
        console.say("")
    found = define(words)
    if options.close is not None:
        closing = close(found, options.close)
        console.say(f"{len(closing.runs)} missing runs of {found.name} are given up: {closing.reason}")
        if chosen := given_up(found, closings(found.folder)):
            ended = max(run.after for run in chosen)
            seen = f"{how_many(ended, 'run')} of the study had ended" if ended else "some had begun"
            console.say(f"Claims about their arms are exploratory from now on: {seen}")
        console.say(f"Results: {found.folder / 'closed.json'}")
        return 0
    if options.check and not check(found, console):
        return 1
    board = board_of(found, Policy())
    if options.watch:
        board = _watch(board, words, console)
        found = board.study
    if as_json_alone:
        print(json.dumps(as_json(found, board.shown()), indent=1))  # noqa: T201
        return 0
    console.say_all(_lines(found, board, rest))
    return 0


def _folders(search: SearchStudy | None, words: tuple[str, ...]) -> Iterator[RunFolder]:
    """Yield the folders of all runs of a study, and of the trials of its search."""
    if search is not None:
        trials = known_trials(search)
        for trial in () if trials is None else trials.all():
            with suppress(UserError):
                yield search.cell(trial.number, trial.words).planned.folder
    if search is None or (search.file is not None and search.winner() is not None):
        yield from (cell.planned.folder for cell in define(words).cells)


def _cancel(name: str, folders: Iterator[RunFolder], console: Console) -> int:
    """Cancel the jobs of these runs, which a sweep that still goes on then leaves."""
    jobs = cancel(folders)
    if jobs:
        console.say(f"{how_many(len(jobs), 'job')} of {name} cancelled: {', '.join(jobs)}")
        console.say("Those that ran write a checkpoint first; the line of the study, typed again, goes on")
        console.say("A sweep of it that still runs goes on with what it had not submitted; Ctrl-C there stops it")
    else:
        console.say(f"No job of {name} is in a queue of Slurm here")
    return 0


def _watch(board: Board, words: tuple[str, ...], console: Console) -> Board:
    """Show a live view until no run is left to do, or until Ctrl-C; return the board with what it saw last.

    Where seeds are added, each claim's path between its looks stands below, and the view goes on until the last look.
    """
    with Live(_view(board), console=console.rich, refresh_per_second=2, transient=True) as live:
        while _goes_on(board):
            try:
                time.sleep(REFRESH)
            except KeyboardInterrupt:
                return board
            before = _ended(board)
            board.refresh()
            if board.study.looks is not None:
                study = define(words)
                if len(study.cells) > len(board.study.cells):
                    board = board_of(study, Policy())
                    live.update(_view(board))
                elif _ended(board) > before:
                    live.update(_view(board))
    return board


def _view(board: Board) -> RenderableType:
    return board if board.study.looks is None else Group(board, *(Text(line) for line in _standing(board.study)))


def _ended(board: Board) -> int:
    return sum(entry.state in NEVER_AGAIN or key in board.closed for key, entry in board.entries.items())


def _goes_on(board: Board) -> bool:
    """Return whether a run is left to do, or a seed may still be added to runs of which none has failed."""
    if _ended(board) < len(board.entries):
        return True
    is_over = board.study.looks is None or any(one.ended for one in extensions(board.study.folder)[-1:])
    return not is_over and all(entry.state in RESULTS for entry in board.entries.values())


def _standing(found: Study) -> list[str]:
    """Return a row on each claim, and a line on what the study may still cost."""
    # The report's code loads scipy, which few studies need here.
    from ablab.judge.extending import standing

    return list(standing(found))


def _lines(found: Study, board: Board, words: Sequence[str]) -> Iterator[str]:
    entries = board.shown()
    if found.experiment is not None:
        yield found.experiment.question
        if found.is_tuning and (tune := found.experiment.tune) is not None:
            keys = " and ".join(tune.keys)
            yield f"First {keys} is tuned for every arm on validation; its seeds are no seeds of the study"
        yield ""
    yield from _plan(found, entries, tried(found))
    yield from found.cautions
    yield ""
    if found.looks is not None and any(entry.record is not None for entry in entries.values()):
        yield "Where the claims stand:"
        yield from _standing(found)
        yield ""
    elif found.claims and any(entry.state not in RESULTS for entry in entries.values()):
        yield "What these seeds can tell:"
        yield from _prospects(found)
        if (looks := found.looks) is not None:
            most = len(found.arms) * looks.last
            yield f"  (while claims are open, seeds are added up to {looks.last} an arm: at most {most} runs)"
        yield ""
    if any(entry.record is not None for entry in entries.values()):
        yield from table_lines(found, entries)
        yield ""
    yield summary(list(entries.values())).plain.rstrip()
    for cells in going_on(entries.values()):
        yield f"  {'   '.join(filter(None, cells))}"
    left = [one for key, one in entries.items() if one.state not in NEVER_AGAIN and key not in board.closed]
    if (seconds := _estimate(left, tried(found))) is not None:
        yield f"About {duration(seconds)} of training are left for one run at a time"
    if what := departed(found):
        yield f"Its {what} differ from those of the first launch: its claims are exploratory if it is launched so"
    if left:
        yield f"Next: {program('train')} -m {shlex.join(words)}"
    if (found.folder / "registered.json").exists() and (stamp := Chain.of(found.outputs).stamp) is not None:
        yield f"Stamp: register {stamp}"
    yield f"Results: {found.folder}{'' if found.folder.exists() else ' (none yet)'}"


def _prospects(found: Study) -> Iterator[str]:
    """Yield a line for each claim; what is true of all claims is said once."""
    expected = list(prospects(found))
    shared = {prospect.words for prospect in expected} if len(expected) > 1 else set()
    for prospect in expected:
        told = "" if len(shared) == 1 else f": {'hopeless: ' if prospect.is_hopeless else ''}{prospect.words}"
        yield f"  {found.said(prospect.claim)}{told}"
    if len(shared) == 1:
        yield f"  (all: {shared.pop()})"
    for caveat, claims in Counter(prospect.caveat for prospect in expected if prospect.caveat).items():
        yield f"  ({'all' if claims == len(expected) else how_many(claims, 'claim')}: {caveat})"


def _plan(found: Study, entries: Mapping[str, LedgerEntry], trials: Mapping[str, Tried]) -> Iterator[str]:
    """Yield a row per arm: its difference from the baseline, and the state of its runs."""
    recipes = {arm.name: flatten(found.cells_of(arm.name)[0].planned.recipe) for arm in found.arms}
    rows = [["arm", "parameters", "differs from the baseline by", "runs"]]
    for arm in found.arms:
        cells = found.cells_of(arm.name)
        states = count([entries[cell.key] for cell in cells])
        known = next((e.record.cost.parameters for c in cells if (e := entries[c.key]).record), None)
        trial = trials.get(condition_id(cells[0].planned.recipe), {})
        parameters = known or trial.get("parameters", "-" if found.task.has_own_scores else "?")
        rows.append(
            [
                found.label_of(arm.name) + (" (baseline)" if arm.name == found.baseline_of(arm.name) else ""),
                parameters if isinstance(parameters, str) else "-" if parameters is None else f"{parameters:,}",
                _difference(recipes[found.baseline_of(arm.name)], recipes[arm.name]) or "-",
                ", ".join(f"{states[state]} {state.value}" for state in State if states[state]),
            ]
        )
    yield from aligned(rows, left=4)
    if any(row[1] == "?" for row in rows):
        yield "(check=true builds every arm, counts its parameters and times a step)"


def _difference(baseline: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    found = differing(baseline, other)
    return ", ".join(f"{key}={as_typed(value)}" for key, value in found.items())


def _estimate(left: Sequence[LedgerEntry], trials: Mapping[str, Tried]) -> float | None:
    """Estimate the seconds of training of the runs that are left from measured steps; None if one has none."""
    seconds = 0.0
    for entry in left:
        trial = trials.get(condition_id(entry.cell.planned.recipe), {})
        if not trial.get("total_steps"):
            return None
        seconds += trial["seconds_per_step"] * trial["total_steps"]
    return seconds or None
