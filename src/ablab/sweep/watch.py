"""Run a launcher on a study, with the board on the console."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext

from rich.live import Live

from ablab.errors import BUSY, UNSUITABLE, UserError
from ablab.study.ledger import State
from ablab.study.study import Cell
from ablab.sweep.launchers.base import Ending, Job, Launcher
from ablab.sweep.progress import NEVER_AGAIN, Board, ended_line
from ablab.sweep.sweep import OnEnd
from ablab.tracking.console import Console

REFRESH = 1.0
"""Seconds between two reads of the store."""

Make = Callable[[Callable[[Ending], None], Callable[[], None]], Launcher]
"""Makes a launcher from two callbacks: one for each run that ends, one called at intervals."""


def launch_watched(
    board: Board,
    cells: Iterable[Cell],
    make: Make,
    console: Console,
    *,
    fail_fast: bool,
    on_end: OnEnd | None = None,
) -> bool:
    """Make these runs; return False when the user has stopped it. Each run that ends is reported at once, above the
    board.

    Raises UserError where the machine lacks what they request; their earlier records stay unchanged.

    `on_end`, where given, words the report of a run; it is called before the next of `cells` is taken.
    """

    def ended(ending: Ending) -> None:
        if ending.code in (BUSY, UNSUITABLE):  # the run's state is unchanged
            return
        entry = board.of(ending.job.key)
        if entry.state is State.PLANNED:  # stopped before it began
            return
        if on_end is None:
            done = sum(other.state in NEVER_AGAIN for other in board.entries.values())
            console.say(ended_line(entry, done, len(board.entries)))
        elif (line := on_end(entry, ending.code)) is not None:
            console.say(line)
        if entry.state is State.FAILED and fail_fast:
            launcher.stop()

    launcher = make(ended, lambda: board.refresh(at_most_every=REFRESH))
    jobs = (_job(cell, board.study.words_of(cell)) for cell in cells)
    with Live(board, console=console.rich, refresh_per_second=2, transient=True) if console.bars else nullcontext():
        launcher.run(jobs)
    if launcher.refused is not None:
        raise UserError(launcher.refused)
    return not launcher.interrupted


def _job(cell: Cell, words: Sequence[str]) -> Job:
    return Job(cell.planned.folder, cell.key, words)
