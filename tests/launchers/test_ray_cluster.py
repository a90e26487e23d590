"""Sweeps on a Ray cluster of two machines: whatever is lost, runs are saved, made once, and it is said."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ablab.errors import DONE
from ablab.store.heartbeat import read_pulse
from ablab.store.run_folder import RunFolder
from tests.launchers.ray_cluster import cluster, is_possible
from tests.launchers.test_orphans import by_and_by, trains
from tests.run.conftest import TINY

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_possible(), reason="needs root and unshare")]
ROOT = Path(__file__).parents[2]
WORDS = (*TINY, "training.valid_every=1000000", "logger=none", "pruning=none", "seed=1,2", "hydra/launcher=ray")


@pytest.fixture
def ray():
    with cluster() as made:
        yield made


@pytest.fixture
def start(ray, tmp_path):
    """A function that starts a sweep of two runs with these words, and returns it once both train, one on each node."""
    started = []

    def sweep(*words):
        out = (tmp_path / "out.txt").open("w")
        line = [*WORDS, *words, f"outputs={tmp_path / 'outputs'}", f"hydra.launcher.address={ray.address}"]
        environment = {**os.environ, **ray.environment, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        command = [sys.executable, str(ROOT / "train.py"), "-m", *line]
        with out:
            started.append(subprocess.Popen(command, stdout=out, stderr=out, cwd=tmp_path, env=environment))
        rows = (tmp_path / "outputs" / "runs").glob
        assert by_and_by(lambda: sum(map(trains, rows("r*/metrics.csv"))) == 2, 120), said(tmp_path)
        return started[-1]

    yield sweep
    for process in started:
        process.kill()
        process.wait()


def said(tmp_path):
    return (tmp_path / "out.txt").read_text()


def folders(tmp_path):
    return [RunFolder(path) for path in (tmp_path / "outputs" / "runs").glob("r*")]


def are_saved(tmp_path):
    return all(folder.continues and not folder.pulse.exists() for folder in folders(tmp_path))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGHUP])
def test_a_launcher_that_is_lost_leaves_saved_runs(start, tmp_path, how):
    """Ray kills its workers within milliseconds."""
    process = start("training.max_steps=100000")
    process.send_signal(how)
    process.wait()
    assert by_and_by(lambda: are_saved(tmp_path), 20), [folder.log.read_text() for folder in folders(tmp_path)]


def test_a_head_that_is_lost_is_one_line_and_leaves_saved_runs(start, ray, tmp_path):
    process = start("training.max_steps=100000")
    ray.kill("head")
    assert process.wait(55) == 1
    last = said(tmp_path).strip().splitlines()[-1]
    assert last.startswith("error: hydra.launcher: the head of the Ray cluster, ")
    assert by_and_by(lambda: are_saved(tmp_path), 60), "its nodes give it up after a minute"


def test_a_node_that_is_lost_takes_no_run_with_it(start, ray, tmp_path):
    """Ray begins it again on the other, where the heart of the dead node must not keep it waiting, nor end the task."""
    process = start("training.max_steps=3000", "hydra.launcher.retries=1")
    (lost,) = [folder for folder in folders(tmp_path) if read_pulse(folder.pulse).host == "n1"]
    ray.kill("n1")
    began = time.monotonic()
    assert process.wait(240) == DONE, said(tmp_path)
    assert "2 runs: 2 finished" in said(tmp_path)
    assert "Waiting for " not in said(tmp_path), "the sweep had to begin it, since the task had ended"
    assert "worked on by" not in lost.log.read_text(), f"after {time.monotonic() - began:.0f} s"
    assert lost.log.read_text().count("steps at most") == 2, "on n1, and on n2"
    (other,) = [folder for folder in folders(tmp_path) if folder != lost]
    assert other.log.read_text().count("steps at most") == 1
