"""Searches of real runs: what is poor is stopped, and what is killed goes on."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ablab.config import compose
from ablab.errors import DONE, STOPPED
from ablab.store.run_folder import RunFolder
from ablab.sweep.launchers.task import perform
from ablab.sweep.search_report import known_trials
from ablab.sweep.search_sweep import _handle_of, open_trials
from ablab.tasks.plan import plan
from tests.study.searches.conftest import SPACE, WORDS, done, outcomes, searched

ROOT = Path(__file__).parents[3]


def test_a_poor_run_is_stopped_by_its_own_process_and_can_be_finished_alone(tmp_path, capsys):
    """Others have been far better after as many steps; the search is told by the storage, whoever launched the run."""
    search = searched(tmp_path, stopping="median", trials=9)
    trials = open_trials(search)
    for _ in range(5):
        one = trials.ask()
        trial_id = trials._study.get_trials()[one.number]._trial_id
        trials._storage.set_trial_intermediate_value(trial_id, 4, 0.1)
        trials.tell(one.number, "finished", [0.1], steps=8, total_steps=8)
    search_folder = search.folder
    _handle_of(search).write(search_folder)
    poor = trials.ask()
    words = search.words(poor.number, poor.words)
    folder = plan(compose(words)).folder
    assert perform(words, None) == STOPPED
    assert "stopped by the search (median) at step 4" in capsys.readouterr().out
    assert folder.record() is None
    assert (folder.checkpoints / "last.pt").exists()
    assert perform(words, None) == STOPPED  # whoever launches it again: the word stays
    search = searched(tmp_path, stopping="median", trials=6)
    code, launched, out = done(search)
    assert (code, launched) == (DONE, [])
    assert f"trial {poor.number}, {','.join(poor.words)}: stopped at step 4 of 8" in out
    assert "1 trial stopped early: 4 of 48 steps saved, 8 %" in out
    assert perform(words[:-1], None) == DONE
    assert folder.record().state == "finished"


def start(folder, *words):
    line = [sys.executable, str(ROOT / "train.py"), "-m", "hydra/sweeper=optuna", "hydra.sweeper.trials=3"]
    return subprocess.Popen(
        [*line, "hydra.launcher.jobs=2", *WORDS, *SPACE, *words, f"outputs={folder}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )


@pytest.mark.slow
def test_killed_with_all_its_processes_it_goes_on_where_it_was(tmp_path):
    search = searched(tmp_path, trials=3)
    process = start(tmp_path)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError, KeyError):
            if (trials := known_trials(search)) is not None and any(trial.scores for trial in trials.all()):
                break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)  # its runs end with their launcher
    process.communicate()
    left = {trial.number: trial.words for trial in known_trials(search).all()}
    assert any(trial.outcome is None for trial in known_trials(search).all())
    process = start(tmp_path)
    out, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (DONE, ""), out
    found = known_trials(search).all()
    assert outcomes(search) == ["finished"] * 3
    assert {trial.number: trial.words for trial in found if trial.number in left} == left
    assert len({trial.run_id for trial in found}) == 3
    for trial in found:
        assert sorted(trial.scores) == [4, 8]
        record = RunFolder(tmp_path / "smoke" / "runs" / trial.run_id).record()
        assert trial.values == (record.selected.scores["loss"],)
