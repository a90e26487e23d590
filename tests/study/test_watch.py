"""A launcher at work on a study: what is told of its runs, and what is not."""

import io

import pytest

from ablab.errors import UserError
from ablab.store.failures import read_failure, write_failure
from ablab.sweep.progress import Board, launch_watched
from ablab.tracking.console import Console
from tests.launchers.test_launcher import NoGpu


def test_nothing_has_become_of_a_run_that_the_machine_refuses(study):
    """Not even of one that failed before, is tried again, and so has a failure on record."""
    failed = study.cells[0].planned.folder.failure
    write_failure(failed, "error", "of another day", None, "now")
    before, heard = read_failure(failed), []
    console = Console(bars=False)
    console.rich.file = io.StringIO()

    def make(on_end, on_poll):
        return NoGpu(1, on_end=on_end, on_poll=on_poll)

    with pytest.raises(UserError, match="no GPU"):
        launch_watched(Board(study), study.cells, make, console, fail_fast=False, on_end=lambda *_: heard.append(_))
    assert (heard, read_failure(failed)) == ([], before)
