"""What a sweep tries again, what it leaves, and when it ends: on a launcher that runs nothing."""

import io
import os
import time

import pytest

from ablab.errors import DONE, FAILED, INTERRUPTED
from ablab.files.disk import ABANDONED
from ablab.store.failures import write_failure
from ablab.store.locks import locked
from ablab.study.definition import define
from ablab.sweep.progress import Board
from ablab.sweep.sweep import Policy, _moved, sweep
from ablab.tracking.console import Console
from tests.report.synthetic import fill
from tests.study.conftest import SMALL
from tests.study.pretend import pretend


class Fake:
    """A launcher that runs nothing: for each launch, how each run ends."""

    def __init__(self, *endings):
        self.endings, self.calls = list(endings), []

    def __call__(self, board, cells, alone, console):
        self.calls.append(([cell.seed for cell in cells], alone))
        for cell, kind in zip(cells, self.endings.pop(0), strict=True):
            if kind == "stop":
                return False
            if kind is not None:
                write_failure(cell.planned.folder.failure, kind, "x", None)
        return True


def swept_by(fake, study, policy=None):
    console = Console(bars=False)
    console.rich.file = io.StringIO()
    return sweep(study, fake, policy or Policy(), console)


def test_memory_and_kills_are_tried_once_more_alone_and_errors_are_not(study):
    fake = Fake(["memory", "killed", "error"], ["memory", "killed"])
    assert swept_by(fake, study) == FAILED
    assert fake.calls == [([1, 2, 3], False), ([1, 2], True)]


def test_earlier_failures_wait_until_asked_for(study):
    for cell in study.cells[:2]:
        write_failure(cell.planned.folder.failure, "error", "x", None)
    fake = Fake(["error"])
    swept_by(fake, study)
    assert fake.calls == [([3], False)]
    fake = Fake(["error"] * 3)
    swept_by(fake, study, Policy(retry_failed=True))
    assert fake.calls == [([1, 2, 3], False)]


def test_fail_fast_tries_nothing_more(study):
    fake = Fake(["memory", None, None])
    assert swept_by(fake, study, Policy(fail_fast=True)) == FAILED
    assert len(fake.calls) == 1


def test_what_somebody_else_has_stopped_is_begun_again_and_never_called_finished(study):
    fake = Fake(*[[None, None, None]] * 9)
    assert swept_by(fake, study) == FAILED
    assert fake.calls == [([1, 2, 3], False)] * 5


def test_it_says_which_run_is_not_begun_again_and_why(study):
    class Stopped(Fake):
        def __call__(self, board, cells, alone, console):
            board.stops.update(dict.fromkeys((cell.key for cell in cells), "stopped by SIGTERM"))
            return super().__call__(board, cells, alone, console)

    folder = study.cells[0].planned.folder
    folder.path.mkdir(parents=True)
    folder.log.write_text("stopped by SIGTERM\n")
    console = Console(bars=False)
    console.rich.file = io.StringIO()
    assert sweep(study, Stopped(*[[None] * 3] * 9), Policy(), console) == FAILED
    why = "interrupted 5 times in a row without a step, last: stopped by SIGTERM"
    said = console.rich.file.getvalue().splitlines()
    _, log, second, third, after = said[said.index(f"{study.cells[0].arm}, seed 1: {why}") :][:5]
    assert log == f"  log: {folder.log}"
    assert second.endswith(f"seed 2: {why}")
    assert third.endswith(f"seed 3: {why}")
    assert after == "Next: the same line, which begins them again"


def test_an_interruption_counts_only_without_a_step(study):
    """On a queue that pre-empts, five are a day; a run that is killed again where it was comes nowhere."""
    metrics = study.cells[0].planned.folder.metrics
    metrics.parent.mkdir(parents=True)
    for cell in study.cells[1:]:
        write_failure(cell.planned.folder.failure, "error", "x", None)

    class Advancing(Fake):
        def __call__(self, board, cells, alone, console):
            step = min(10 * len(self.calls), 70)
            metrics.write_text(f"step,loss\n{step},1.0\n")
            return super().__call__(board, cells, alone, console)

    fake = Advancing(*[[None]] * 20)
    assert swept_by(fake, study) == FAILED
    assert len(fake.calls) == 1 + 7 + 5, "steps 0, 10, ..., 70, and five in vain"


def test_what_somebody_has_cancelled_is_left_and_the_others_go_on(study):
    class Cancelling(Fake):
        def __call__(self, board, cells, alone, console):
            board.given_up[study.cells[0].key] = "job 17 was cancelled"
            return super().__call__(board, cells, alone, console)

    fake = Cancelling(*[[None] * 3], *[[None] * 2] * 9)
    assert swept_by(fake, study) == FAILED
    assert [seeds for seeds, _ in fake.calls] == [[1, 2, 3], *[[2, 3]] * 4]


def test_a_run_that_goes_on_as_a_job_is_handed_to_the_launcher(study, monkeypatch):
    """Which follows it: the sweep learns who has cancelled it. Any other run that goes on is waited for."""
    first, second, _ = (cell.planned.folder for cell in study.cells)
    first.job.parent.mkdir(parents=True)
    first.job.write_text("{}")
    fake = Fake([None, "error"])

    def ends(board, console):
        raise KeyboardInterrupt

    monkeypatch.setattr("ablab.sweep.sweep._wait_for_others", ends)
    with locked(first), locked(second), pytest.raises(KeyboardInterrupt):
        swept_by(fake, study)
    assert fake.calls == [([1, 3], False)]


def test_a_run_that_is_judged_in_two_ways_is_launched_once_at_a_time(tmp_path):
    fake = Fake(["error"], ["error"])
    swept_by(fake, define((*SMALL, "decoding=beam,greedy", f"outputs={tmp_path}")))
    assert [len(seeds) for seeds, _ in fake.calls] == [1]


def test_a_run_that_was_cancelled_is_not_begun_to_be_judged_in_another_way(tmp_path):
    class Cancelling(Fake):
        def __call__(self, board, cells, alone, console):
            board.given_up.update((cell.key, "job 17 was cancelled") for cell in cells)
            return super().__call__(board, cells, alone, console)

    fake = Cancelling([None])
    swept_by(fake, define((*SMALL, "decoding=beam,greedy", f"outputs={tmp_path}")))
    assert len(fake.calls) == 1


def test_stopped_is_stopped(study):
    assert swept_by(Fake(["stop", None, None]), study) == INTERRUPTED


def test_what_was_refused_is_asked_again_by_every_sweep_but_once(study):
    fake = Fake(["refused", "error", "error"])
    swept_by(fake, study)
    assert fake.calls == [([1, 2, 3], False)]
    fake = Fake(["refused"])
    swept_by(fake, study)
    assert fake.calls == [([1], False)]


@pytest.mark.parametrize("rerun", ["stale", True])
def test_with_rerun_what_was_refused_begins_anew(rerun, study):
    fake = Fake(["refused", "error", "error"], ["error"])
    swept_by(fake, study, Policy(rerun=rerun))
    assert fake.calls == [([1, 2, 3], False), ([1], False)]
    assert [path.name for path in (study.outputs / "superseded").iterdir()] == [f"{study.cells[0].planned.run_id}-1"]


def test_with_rerun_a_run_that_a_process_works_on_stays(study):
    """As one that is pruned now: its results are those of the old weights."""
    first, *others = [cell.planned.folder for cell in study.cells]
    for cell in study.cells:
        pretend(cell, 1.0)
    with locked(first):
        assert _moved(Board(study).entries.values()) == (len(others), 1)
    assert first.record() is not None
    assert not any(folder.record() for folder in others)


def test_what_an_earlier_sweep_was_refused_begins_anew_at_once(study):
    write_failure(study.cells[0].planned.folder.failure, "refused", "x", None)
    fake = Fake(["error"] * 3)
    swept_by(fake, study, Policy(rerun="stale"))
    assert fake.calls == [([1, 2, 3], False)]
    assert len(list((study.outputs / "superseded").iterdir())) == 1


def test_a_study_that_ends_removes_what_a_power_cut_left_of_its_finished_runs(tmp_path):
    """Nobody opens them again; what is fresh may be an analysis that goes on."""
    finished = fill((*SMALL, "seed=1,2"), {"one arm": 0.2}, outputs=tmp_path)
    old, fresh = (finished.cells[0].planned.folder.path / f".spent.json.{name}" for name in ("mpfxh2cq", "abcd1234"))
    for half, age in ((old, ABANDONED + 5), (fresh, 0)):
        half.touch()
        os.utime(half, (time.time() - age, time.time() - age))
    assert swept_by(Fake(), finished) == DONE
    assert (old.exists(), fresh.exists()) == (False, True)
