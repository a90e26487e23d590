"""Runs that a sweep makes: each is reported when it ends, and begun again a number of times."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field

from rich.live import Live

from ablab.errors import BUSY, INTERRUPTED, UNSUITABLE, UserError
from ablab.store.metrics import read_metrics
from ablab.store.run_folder import RunFolder
from ablab.study.ledger import RESULTS, LedgerEntry, State
from ablab.study.study import Cell
from ablab.sweep.launchers.base import Ending, Job, Launcher
from ablab.sweep.progress import NEVER_AGAIN, Board, ended_line, seconds_left
from ablab.text import duration, how_many
from ablab.tracking.console import Console

RETRIES = {"memory": 1, "killed": 1, "timeout": 0, "refused": 0, "error": 0}
"""Retries of a failed run by kind of failure, one at a time, at the end of the sweep. An error would only recur."""

MOST_IN_VAIN = 5
"""Maximum number of times that one sweep begins a run that is interrupted from outside and comes no further."""


class Interruptions:
    """Counts for each run, by its id, how often it was interrupted since it last came further."""

    def __init__(self) -> None:
        self._steps: dict[str, int] = {}
        self._in_vain: dict[str, int] = {}

    def begin(self, entry: LedgerEntry) -> None:
        """Note how far a run is that is begun."""
        folder = entry.cell.planned.folder
        self._steps.setdefault(folder.run_id, last_step(folder))

    def count(self, entry: LedgerEntry, what: str | None) -> str | None:
        """Count the interruption of a run, by `what`; return why it is not begun again, or None."""
        run, step = entry.cell.planned.run_id, last_step(entry.cell.planned.folder)
        if step > self._steps.get(run, -1):
            self._steps[run], self._in_vain[run] = step, 0
            return None
        self._in_vain[run] = self._in_vain.get(run, 0) + 1
        if self._in_vain[run] < MOST_IN_VAIN:
            return None
        return f"interrupted {MOST_IN_VAIN} times in a row without a step" + (f", last: {what}" if what else "")


def last_step(folder: RunFolder) -> int:
    """Return the last step that a run has measured; -1 before any."""
    try:
        return max((int(row["step"]) for row in read_metrics(folder.metrics)), default=-1)
    except (OSError, UserError):
        return -1


OnEnd = Callable[[LedgerEntry, int | None], str | None]
"""Called for each run that has ended, with the exit code of its process, if any; returns the console's line, or None.
"""


WORTH_SAYING = 120.0
"""Seconds of a sweep from which it says how long it takes."""

REFRESH = 1.0
"""Seconds between two reads of the store."""


@dataclass
class Watch:
    """Runs being made, each reported when it ends. `told`: the cells that were; `ours`: those that this sweep makes.

    `on_end`, where given, words the report of a run.
    """

    board: Board
    console: Console
    on_end: OnEnd | None
    told: set[str]
    ours: set[str] = field(default_factory=set)
    has_estimated: bool = False

    def tell(self, entry: LedgerEntry) -> None:
        self.told.add(entry.cell.key)
        self.console.say(ended_line(entry, len(self.told), len(self.board.entries)))

    def polled(self) -> None:
        """Tell of runs that another command has made meanwhile."""
        self.board.refresh(at_most_every=REFRESH)
        self._estimate()
        for key, entry in self.board.entries.items() if self.on_end is None else ():
            if entry.state in NEVER_AGAIN and key not in self.told | self.ours:
                self.tell(entry)

    def _estimate(self) -> None:
        """Say once what all that is left takes, as soon as a first run tells its speed: it may be days.

        Before that nothing is known; and once runs have ended, a terminal shows it all the time.
        """
        entries = [] if self.has_estimated or self.on_end is not None else list(self.board.entries.values())
        if any(entry.record is not None for entry in entries):
            self.has_estimated = True
        elif entries and (seconds := seconds_left(entries)) is not None and seconds >= WORTH_SAYING:
            self.has_estimated = True
            at_once = sum(entry.state is State.RUNNING for entry in entries)
            left = sum(entry.state not in NEVER_AGAIN for entry in entries)
            how = "one at a time" if at_once == 1 else f"{at_once} at a time"
            self.console.say(
                f"About {duration(seconds)} of training for {how_many(left, 'run')}, {how}, at the speed of the first"
            )

    def job_of(self, cell: Cell) -> Job:
        self.ours.add(cell.key)
        if self.board.entries[cell.key].state is State.FAILED:  # before
            self.told.discard(cell.key)
        return Job(cell.planned.folder, cell.key, self.board.study.words_of(cell))

    def ended(self, ending: Ending) -> LedgerEntry | None:
        """Tell of the end of a job; return the run's entry, None where the job decided nothing."""
        if ending.code in (BUSY, UNSUITABLE):  # the run's state is unchanged
            self.ours.discard(ending.job.key)
            return None
        entry = self.board.of(ending.job.key)
        if entry.state in RESULTS and entry.failure is not None:  # its process was killed once the run was complete
            with suppress(OSError):
                entry.cell.planned.folder.failure.unlink(missing_ok=True)
            entry = self.board.of(ending.job.key)
        if ending.code == INTERRUPTED and ending.cause is not None:
            self._interrupted(entry, ending, ending.cause.line)
        if entry.state is State.PLANNED or entry.cell.key in self.told:  # stopped before it began, or another's
            return None
        if self.on_end is None:
            self.tell(entry)
        elif (line := self.on_end(entry, ending.code)) is not None:
            self.console.say(line)
        return entry

    def _interrupted(self, entry: LedgerEntry, ending: Ending, why: str) -> None:
        self.board.stops[entry.cell.key] = why
        if ending.is_final and entry.state not in NEVER_AGAIN:
            self.board.given_up[entry.cell.key] = why
            self.console.say(f"{entry.cell.said}: {why}; the others go on")


def launch_watched(
    board: Board,
    cells: Iterable[Cell],
    launcher: Launcher,
    console: Console,
    *,
    fail_fast: bool,
    on_end: OnEnd | None = None,
) -> bool:
    """Make these runs; return False when the user has stopped it. Each run that ends is reported at once, above the
    board, with its number among those that have; one that another command makes meanwhile is reported too.

    Raises UserError where the machine lacks what they request; their earlier records stay unchanged.

    `on_end`, where given, words the report of a run; it is called before the next of `cells` is taken.
    """
    again = {cell.key for cell in cells} if isinstance(cells, Sequence) else set()  # those that failed, of a retry
    told = {key for key, one in board.entries.items() if one.state in NEVER_AGAIN}
    watch = Watch(board, console, on_end, told - again)

    def ended(ending: Ending) -> None:
        entry = watch.ended(ending)
        if entry is not None and entry.state is State.FAILED and fail_fast:
            launcher.stop()

    launcher.on_end, launcher.on_poll = ended, watch.polled
    launcher.say, launcher.study = console.say, board.study.name
    with Live(board, console=console.rich, refresh_per_second=2, transient=True) if console.bars else nullcontext():
        launcher.run(map(watch.job_of, cells))
    if launcher.refused is not None:
        raise UserError(launcher.refused)
    return not launcher.interrupted
