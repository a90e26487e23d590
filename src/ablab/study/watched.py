"""Sweeps on this machine: the board lives on the screen while the local launcher works."""

from collections.abc import Sequence
from contextlib import nullcontext

from rich.live import Live

from ablab.exits import BUSY
from ablab.screen import Screen
from ablab.study.board import NEVER_AGAIN, Board, ended_line
from ablab.study.definition import Cell
from ablab.study.launch import Ending, Job, Launcher, Places
from ablab.study.ledger import State

REFRESH = 1.0
"""Seconds between two looks at the store."""


def launch_locally(board: Board, cells: Sequence[Cell], places: Places, screen: Screen, *, fail_fast: bool) -> bool:
    """Make these runs; False when somebody has stopped it. A run that ends is said at once, above the board."""

    def ended(ending: Ending) -> None:
        if ending.code == BUSY:
            return
        entry = board.of(ending.job.key)
        done = sum(other.state in NEVER_AGAIN for other in board.entries.values())
        screen.say(ended_line(entry, done, len(board.entries)))
        if entry.state is State.FAILED and fail_fast:
            launcher.stop()

    launcher = Launcher(places, ended, lambda: board.refresh(at_most_every=REFRESH))
    jobs = [Job(cell.planned.folder, cell.key, board.study.words_of(cell)) for cell in cells]
    with Live(board, console=screen.console, refresh_per_second=2, transient=True) if screen.bars else nullcontext():
        launcher.run(jobs)
    return not launcher.interrupted
