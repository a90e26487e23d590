"""Progress of a sweep or a search on the console: what has ended, the runs in progress, and the time left."""

import os
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ablab.search.trials import Trial, Trials, best_so_far, counts_of, of_asked
from ablab.store.failures import Failure
from ablab.store.heartbeat import Pulse
from ablab.store.records import Strict
from ablab.study.ledger import RESULTS, LedgerEntry, State, count, entry_of, ledger
from ablab.study.search import SearchStudy
from ablab.study.study import Cell, Study
from ablab.sweep.launchers.jobs import View
from ablab.tasks.task import written
from ablab.text import counted, duration, how_many

COLOURS = {
    State.FINISHED: "green",
    State.DIVERGED: "yellow",
    State.FAILED: "red",
    State.RUNNING: "cyan",
}
NEVER_AGAIN = (State.FAILED, *RESULTS)
MOST_SHOWN_RUNS = 8
"""Runs in a queue, or given up, that are shown one by one."""

MOST_ARMS = 8
"""Arms that are named after a failure that befell many."""


class Board:
    """A ledger that is read again on refresh, except for runs in a final state."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.entries = ledger(study)
        self.stops: dict[str, str] = {}
        """What interrupted a run the last time, by its key, where that is known."""
        self.given_up: dict[str, str] = {}
        """Why this sweep does not begin a run again, by its key."""
        self.closed: dict[str, str] = {}
        """What was said of the runs that `study close=` gave up, by their keys."""
        self._view = View()
        self._read = time.monotonic()

    def refresh(self, *, at_most_every: float = 0.0, everything: bool = False) -> None:
        """Read again the entries that may have changed."""
        if time.monotonic() - self._read < at_most_every:
            return
        self._read = time.monotonic()
        for key, entry in self.entries.items():
            if everything or entry.state not in RESULTS:
                self.entries[key] = entry_of(entry.cell)

    def of(self, key: str) -> LedgerEntry:
        """Read one entry again and return it."""
        self.entries[key] = entry_of(self.entries[key].cell)
        return self.entries[key]

    @property
    def threads(self) -> int | None:
        """The threads of most of its runs that have ended, by which others are made alike; None before there is one."""
        records = [entry.record for entry in self.entries.values() if entry.record is not None]
        known = Counter(threads for record in records if (threads := record.runtime.get("threads")))
        return known.most_common(1)[0][0] if known else None

    def shown(self) -> dict[str, LedgerEntry]:
        """Return the entries; those that wait in a queue, which the store does not know, as queued."""
        return self._view.of(self.entries)

    def headline(self, entries: Sequence[LedgerEntry]) -> Text:
        """Return what stands above the runs in progress."""
        return summary(entries)

    def __rich__(self) -> RenderableType:
        entries = list(self.shown().values())
        table = Table(box=None, pad_edge=False, show_header=False)
        for cells in going_on(entries):
            table.add_row(*map(Text, cells))
        return Group(self.headline(entries), table)


def summary(entries: Sequence[LedgerEntry]) -> Text:
    """Return a line such as `40 runs: 12 finished  2 running  1 failed  25 planned   about 14 min left`."""
    states = count(entries)
    parts = [(f"{states[state]} {state.value}  ", COLOURS.get(state, "")) for state in State if states[state]]
    left = seconds_left(entries)
    tail = f" about {duration(left)} left" if left else ""
    return Text.assemble(f"{how_many(len(entries), 'run')}: ", *parts, tail)


def seconds_left(entries: Sequence[LedgerEntry]) -> float | None:
    """Estimate the time left from finished runs and the speed of running ones, with as many at a time as run now."""
    running = [entry for entry in entries if entry.state is State.RUNNING]
    whole = [entry.record.cost.seconds for entry in entries if entry.record is not None]
    whole += [seconds for entry in running if (seconds := _whole(entry)) is not None]
    left = [entry for entry in entries if entry.state not in NEVER_AGAIN]
    if not whole or not left:
        return None
    usual = statistics.fmean(whole)
    spent = sum(_spent(entry) for entry in running)
    return max(0.0, usual * len(left) - spent) / max(1, len(running))


def _whole(entry: LedgerEntry) -> float | None:
    pulse = entry.pulse
    if pulse is None or pulse.seconds_per_step is None or pulse.total_steps is None:
        return None
    return pulse.seconds_per_step * pulse.total_steps


def _spent(entry: LedgerEntry) -> float:
    pulse = entry.pulse
    return 0.0 if pulse is None or pulse.seconds_per_step is None else pulse.seconds_per_step * pulse.step


def going_on(entries: Iterable[LedgerEntry]) -> Iterator[list[str]]:
    """Yield the cells of each run that goes on, and then of some that wait in a queue."""
    known = list(entries)
    yield from (running_cells(entry) for entry in known if entry.state is State.RUNNING)
    queued = [entry for entry in known if entry.state is State.QUEUED]
    for entry in queued[:MOST_SHOWN_RUNS]:
        yield [entry.cell.said, f"queued ({entry.job})", "", "", "", ""]
    if len(queued) > MOST_SHOWN_RUNS:
        yield [f"{len(queued) - MOST_SHOWN_RUNS} more", "queued", "", "", "", ""]


def running_cells(entry: LedgerEntry) -> list[str]:
    """Return the cells of a run that goes on: how far it is, and what it said last if its task lets it speak."""
    pulse = entry.pulse
    name = entry.cell.said
    said = last_line(entry.cell.planned.folder.log) if entry.cell.planned.task.is_heard else ""
    if pulse is None:
        return [name, "starting", "", "", "", said]
    steps = f"step {pulse.step:,}" + (f" of {pulse.total_steps:,}" if pulse.total_steps else "")
    watched = entry.cell.planned.task.watched
    score = "" if pulse.score is None else f"{watched.title} {pulse.score:.{watched.digits}f}"
    whole = _whole(entry)
    left = "" if whole is None else f"{duration(max(0.0, whole - _spent(entry)))} left"
    return [name, pulse.stage, steps if pulse.step else "", score, left, said]


MOST_SHOWN = 60
"""Characters of a run's last line."""

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What programs send to a terminal for colours and places."""


def last_line(log: Path) -> str:
    """Return the last line of a log that is not empty, cut, as a terminal would show it; empty without a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            tail = file.read().decode(errors="replace")
    except OSError:
        return ""
    plain = (ESCAPES.sub("", line) for line in tail.replace("\r", "\n").split("\n"))
    lines = [line for each in plain if (line := "".join(filter(str.isprintable, each)).strip())]
    return lines[-1][:MOST_SHOWN] if lines else ""


def ended_line(entry: LedgerEntry, number: int, total: int) -> str:
    """Return a line on a run that has ended; after a failure, also one with the path of its log."""
    what = f"[{number}/{total}] {entry.cell.said}: {entry.state.value}"
    if entry.state is State.FAILED and entry.failure is not None:
        return f"{what} {failure_line(entry.failure)}"
    if entry.record is None:
        return what
    record = entry.record
    took = duration(record.cost.seconds) + ("" if record.mixed is None else f", mixed ({record.mixed})")
    if record.state == "diverged":
        return f"{what}: {record.reason}, {took}"
    planned = entry.cell.planned
    evaluation, primary = planned.folder.evaluation(planned.evaluation_id), planned.task.scores[planned.task.primary]
    value = None if evaluation is None else primary.value(record, evaluation)
    if evaluation is None or value is None:
        return what
    where = f"{evaluation.test_name} " if primary.place == "test" else ""
    return f"{what}, {where}{written(primary, value)}, {took}"


def failure_line(failure: Failure) -> str:
    """Describe a failure, with the path of its log on a second line."""
    log = "" if failure.log is None else f"\n  log: {failure.log}"
    return f"({failure.kind}): {failure.line}{log}"


def failure_lines(entries: Iterable[LedgerEntry]) -> Iterator[str]:
    """Describe the failures; those that are alike are one, with the arms and seeds that it befell."""
    alike: dict[tuple[str, str], list[tuple[Cell, Failure]]] = {}
    for entry in entries:
        if (failure := entry.failure) is not None:
            alike.setdefault((failure.kind, failure.line), []).append((entry.cell, failure))
    for failed in alike.values():
        cell, first = failed[0]
        if len(failed) == 1:
            yield f"{cell.said} failed {failure_line(first)}"
            continue
        seeds: dict[str, list[int]] = {}
        for cell, _ in failed:
            seeds.setdefault(cell.label or cell.arm, []).append(cell.seed)
        arms = [f"{arm}, {'seeds' if len(own) > 1 else 'seed'} {counted(own)}" for arm, own in seeds.items()]
        more = f"; {len(arms) - MOST_ARMS} more arms" if len(arms) > MOST_ARMS else ""
        said = f"{how_many(len(failed), 'run')} failed {failure_line(first)}"
        yield f"{said}\n  runs: {'; '.join(arms[:MOST_ARMS])}{more}"


def given_up_lines(board: Board) -> Iterator[str]:
    """Say of each run that a sweep does not begin again why, and where its log is; of many, of the first."""
    for key, why in list(board.given_up.items())[:MOST_SHOWN_RUNS]:
        cell, log = board.entries[key].cell, board.entries[key].cell.planned.folder.log
        yield f"{cell.said}: {why}" + (f"\n  log: {log}" if log.exists() else "")
    if (more := len(board.given_up) - MOST_SHOWN_RUNS) > 0:
        yield f"{how_many(more, 'more run')} like these"


class StudyRun(Strict):
    """A run of a study. `state`: as in its ledger. `pulse`: the last heartbeat of a run that goes on. `job`: what the
    queue says of one that is queued.
    """

    arm: str
    seed: int
    run_id: str
    state: str
    folder: str
    words: list[str]
    pulse: Pulse | None
    failure: Failure | None
    job: str | None


class StudyState(Strict):
    """The plan and state of a study. `states`: number of runs in each."""

    study: str
    baseline: str
    seeds: list[int]
    states: dict[str, int]
    seconds_left: float | None
    runs: list[StudyRun]


def as_json(study: Study, entries: Mapping[str, LedgerEntry]) -> dict[str, object]:
    """Return the progress as data, for programs."""
    state = StudyState(
        study=study.name,
        baseline=study.baseline,
        seeds=list(study.seeds),
        states={state.value: number for state, number in count(list(entries.values())).items()},
        seconds_left=seconds_left(list(entries.values())),
        runs=[
            StudyRun(
                arm=cell.arm,
                seed=cell.seed,
                run_id=cell.planned.run_id,
                state=entries[cell.key].state.value,
                folder=str(cell.planned.folder.path),
                words=list(cell.words),
                pulse=entries[cell.key].pulse,
                failure=entries[cell.key].failure,
                job=entries[cell.key].job,
            )
            for cell in study.cells
        ],
    )
    return state.model_dump()


class SearchBoard(Board):
    """The runs of the trials asked for so far."""

    def __init__(self, search: SearchStudy, trials: Trials) -> None:
        super().__init__(Study(search.name, [], "", [search.settings.training_seed], []))
        self.search, self.trials = search, trials
        self.all_trials: list[Trial] = trials.all()

    def add(self, cell: Cell) -> LedgerEntry:
        """Add the run of a trial and return its entry. Several trials may share one run."""
        self.entries[cell.key] = entry_of(cell)
        return self.entries[cell.key]

    def headline(self, entries: Sequence[LedgerEntry]) -> Text:
        """Return such as `7 of 20 trials: 5 finished, 2 stopped early   best so far: trial 3, valid_loss 2.310`."""
        done = [trial for trial in self.all_trials if trial.outcome is not None]
        line = of_asked(len(done), self.search.settings.trials)
        line += f": {counts_of(done)}" if done else ""
        best = best_so_far(self.all_trials, self.trials.objectives, self.trials.names[0])
        return Text(line if best is None else f"{line}   {best}")
