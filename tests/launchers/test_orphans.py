"""A launcher that is killed takes its runs with it: they save, end within seconds, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ablab.store.locks import is_held
from ablab.store.metrics import read_metrics
from ablab.store.run_folder import RunFolder
from tests.run.conftest import TINY

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, time
open(f"started{sys.argv[1]}.txt", "w").close()
time.sleep(60)
"""
STUDY = """
question: Does it help?
command: [python, program.py, "{seed}{rate}", "{result}"]
inputs: [program.py]
scores: {val_loss: {better: lower}}
common: [rate=0.1]
factors: {rate: [0.1, 0.2]}
seeds: [1, 2]
"""


def launched(*words):
    """Start a sweep in a session of its own, by which its processes are known afterwards."""
    return subprocess.Popen(
        [sys.executable, "-m", "ablab", "train", "-m", *words, "hydra.launcher.jobs=2"],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )


def alive(session):
    """Return the processes of a session, without those that have ended and were not waited for."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _parent, _group, its = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has ended meanwhile
            continue
        if int(its) == session and state != "Z":
            found.append(int(stat.parent.name))
    return found


@contextmanager
def killed_with(launcher, seconds):
    """Kill a launcher alone after the block; its processes must end within so many seconds."""
    try:
        yield
        launcher.kill()
        launcher.wait()
        assert by_and_by(lambda: not alive(launcher.pid), seconds), "runs, their programs or the server are left"
    finally:
        for process in alive(launcher.pid):
            os.kill(process, signal.SIGKILL)


def trains(metrics):
    """Return whether a run has taken ten steps."""
    with suppress(ValueError):  # a row is being written
        return any(row["step"] >= 10 for row in read_metrics(metrics))
    return False


def by_and_by(holds, seconds):
    """Return whether it holds before so many seconds have passed."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_commands_end_with_their_launcher(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    Path("program.py").write_text(PROGRAM)
    Path("experiments").mkdir()
    Path("experiments/rates.yaml").write_text(STUDY)
    launcher = launched("experiment=rates", "logger=none")
    with killed_with(launcher, seconds=15):
        assert by_and_by(lambda: len(list(Path().glob("started*.txt"))) == 2, 60)
    assert not any(is_held(RunFolder(path).lock) for path in Path("outputs/runs").glob("r*"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_runs_save_what_they_have(tmp_path):
    length = ("training.max_steps=20000", "training.valid_every=500", "logger=none", "pruning=none")
    words = (*TINY, *length, "norm=pre,post", "seed=1", f"outputs={tmp_path}")
    launcher = launched(*words)
    rows = f"{tmp_path}/runs"
    with killed_with(launcher, seconds=20):
        assert by_and_by(lambda: sum(map(trains, Path(rows).glob("*/metrics.csv"))) == 2, 60)
    folders = [RunFolder(path) for path in Path(rows).glob("r*")]
    assert len(folders) == 2
    assert all(folder.continues for folder in folders), "each has saved"
    assert all("continues from there" in folder.log.read_text() for folder in folders)
