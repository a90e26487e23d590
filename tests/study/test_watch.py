"""A launcher at work on a study: what is told of its runs, and what is not."""

import io

import pytest

from ablab.errors import BUSY, INTERRUPTED, UserError
from ablab.store.failures import read_failure, write_failure
from ablab.sweep.launchers.base import Cause, Ending
from ablab.sweep.progress import Board
from ablab.sweep.watch import launch_watched
from ablab.tracking.console import Console
from tests.launchers.test_launcher import NoGpu
from tests.study.pretend import pretend


def test_nothing_has_become_of_a_run_that_the_machine_refuses(study):
    """Not even of one that failed before, is tried again, and so has a failure on record."""
    failed = study.cells[0].planned.folder.failure
    write_failure(failed, "error", "of another day", None)
    before, heard = read_failure(failed), []
    console = Console(bars=False)
    console.rich.file = io.StringIO()

    with pytest.raises(UserError, match="no GPU"):
        launch_watched(Board(study), study.cells, NoGpu(1), console, fail_fast=False, on_end=lambda *_: heard.append(_))
    assert (heard, read_failure(failed)) == ([], before)


def test_each_run_that_ends_has_a_number_of_its_own_whoever_makes_it(study, monkeypatch):
    """Another command makes the second run while the first goes on, and the third was handed out too late."""
    monkeypatch.setattr("ablab.sweep.watch.REFRESH", 0.0)
    said = io.StringIO()
    console = Console(bars=False)
    console.rich.file = said
    first, second, third = study.cells[:3]

    def end(cell):
        write_failure(cell.planned.folder.failure, "error", "of today", None)

    class Interleaved:
        refused, interrupted = None, False

        def run(self, jobs):
            jobs = list(jobs)
            self.on_poll()
            end(second)  # by another command
            self.on_poll()
            end(first)
            self.on_poll()
            self.on_end(Ending(jobs[0], 1, Cause("error", "")))
            end(third)  # by another command again, of which the launcher's process only sees the result
            self.on_end(Ending(jobs[1], BUSY, Cause("error", "")))
            self.on_poll()
            self.on_poll()

    board = Board(study)
    launch_watched(board, [first, third], Interleaved(), console, fail_fast=False)
    total = len(board.entries)
    lines = [line for line in said.getvalue().splitlines() if line.startswith("[")]
    told = [
        f"[{number}/{total}] {cell.arm}, seed {cell.seed}:" for number, cell in enumerate((second, first, third), 1)
    ]
    assert [line[: len(begin)] for line, begin in zip(lines, told, strict=True)] == told


def test_runs_that_are_tried_again_count_from_the_first(study):
    console = Console(bars=False)
    console.rich.file = io.StringIO()
    for cell in study.cells:
        write_failure(cell.planned.folder.failure, "error", "of yesterday", None)

    class Retries:
        refused, interrupted = None, False

        def run(self, jobs):
            for job in jobs:
                write_failure(job.folder.failure, "error", "of today", None)
                self.on_end(Ending(job, 1, None))

    board = Board(study)
    launch_watched(board, study.cells, Retries(), console, fail_fast=False)
    lines = [line.partition("]")[0] for line in console.rich.file.getvalue().splitlines() if line.startswith("[")]
    assert lines == [f"[{number}/3" for number in (1, 2, 3)]


def test_a_run_that_its_owner_has_cancelled_is_told_and_given_up(study):
    """What merely interrupted the other is remembered, in case that it comes no further."""
    console = Console(bars=False)
    console.rich.file = io.StringIO()

    class Cancelled:
        refused, interrupted = None, False

        def run(self, jobs):
            first, second, third = jobs
            write_failure(third.folder.failure, "error", "of today", None)
            self.on_end(Ending(first, INTERRUPTED, Cause("killed", "job 17 was cancelled"), is_final=True))
            self.on_end(Ending(second, INTERRUPTED, Cause("killed", "job 18 ended as PREEMPTED")))
            self.on_end(Ending(third, INTERRUPTED, Cause("killed", "job 19 was cancelled"), is_final=True))

    board = Board(study)
    launch_watched(board, study.cells, Cancelled(), console, fail_fast=False)
    first, second, _ = study.cells
    assert board.given_up == {first.key: "job 17 was cancelled"}, "the third had an outcome already"
    assert board.stops[second.key] == "job 18 ended as PREEMPTED"
    assert f"{first.arm}, seed 1: job 17 was cancelled; the others go on\n" in console.rich.file.getvalue()


@pytest.mark.parametrize("state", ["diverged", None])
def test_a_run_that_was_killed_once_it_was_complete_has_not_failed(study, state):
    """The launcher, which saw the process die, has noted a failure."""
    console = Console(bars=False)
    console.rich.file = io.StringIO()
    cell = study.cells[0]

    class Killed:
        refused, interrupted = None, False

        def run(self, jobs):
            (job,) = jobs
            if state is not None:
                pretend(cell, 1.0, state)
            write_failure(job.folder.failure, "killed", "by SIGKILL", None)
            self.on_end(Ending(job, -9, Cause("killed", "by SIGKILL")))

    board = Board(study)
    launch_watched(board, [cell], Killed(), console, fail_fast=False)
    assert (board.entries[cell.key].failure is None) == (state is not None)
    assert cell.planned.folder.failure.exists() == (state is None)
