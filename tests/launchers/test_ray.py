"""Runs as tasks of a Ray cluster: what is lost with a node is begun again elsewhere, and nothing is run twice."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
import ray
from ray.exceptions import RayTaskError

from ablab.errors import DONE, UserError
from ablab.store.run_folder import RunFolder
from ablab.sweep.launchers.base import Cause, Job
from ablab.sweep.launchers.ray import RayTasks, Resources, _carried, _connect
from tests.study.test_sweep import ROOT, WORDS, runs


@pytest.fixture
def cluster():
    """Two nodes with room for one run each, and a head that takes none."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    before = signal.getsignal(signal.SIGTERM)
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [made.add_node(num_cpus=1) for _ in range(2)]
    yield made, nodes
    made.shutdown()
    signal.signal(signal.SIGTERM, before)  # Ray sets its own in whoever starts a node


def test_a_run_finds_its_tracker_from_any_node(monkeypatch):
    there = {"MLFLOW_TRACKING_URI": "http://there:5000", "WANDB_ENTITY": "we", "ABLAB_CONFIG_DIR": "/options"}
    for name, value in {**there, "HOME_OF_ANOTHER": "/home"}.items():
        monkeypatch.setenv(name, value)
    assert there.items() <= _carried().items()
    assert "HOME_OF_ANOTHER" not in _carried()


@pytest.mark.slow
def test_a_node_that_is_lost_takes_no_run_with_it(cluster, tmp_path):
    made, nodes = cluster
    words = [word for word in WORDS if not word.startswith("hydra.launcher")]
    line = [*words, "seed=1,2", f"outputs={tmp_path}", "hydra/launcher=ray"]
    line += [f"hydra.launcher.address={made.address}"]
    command = [sys.executable, str(ROOT / "train.py"), "-m", *line]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        deadline = time.monotonic() + 120
        while len(list(tmp_path.glob("smoke/runs/*/log.txt"))) < 2 and process.poll() is None:  # one on each node
            assert time.monotonic() < deadline
            time.sleep(0.1)
        made.remove_node(nodes[0], allow_graceful=False)
        assert len(list(tmp_path.glob("smoke/runs/*/record.json"))) < 2  # there was something to lose
        out, err = process.communicate(timeout=200)
    assert process.returncode == DONE, out + err
    assert "2 runs: 2 finished" in out
    finished = runs(tmp_path)
    assert len(finished) == 2
    for run in finished:
        assert run.record() is not None
        log = (run.path / "log.txt").read_text()
        assert log.count("step      8") == 1, log


NODES = [
    {"Alive": True, "Resources": {"CPU": 4.0, "memory": 8e9}},
    {"Alive": True, "Resources": {"CPU": 1.0, "GPU": 2.0, "memory": 4e9}},
    {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0, "memory": 512e9}},
]


@pytest.fixture
def pretended(monkeypatch):
    """A cluster without processes, which takes SIGTERM for itself as Ray does."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: signal.signal(signal.SIGTERM, lambda *_: sys.exit(1)))
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(ray, "nodes", lambda: NODES)
    monkeypatch.setattr(ray, "remote", lambda **_: lambda function: function)
    yield
    signal.signal(signal.SIGTERM, before)


def tasks(**resources):
    wanted = {"cpus": 1, "gpus": 0, "memory_gb": None, "retries": 3}
    return RayTasks(None, Resources(**{**wanted, **resources}), None)


@pytest.mark.usefixtures("pretended")
def test_sigterm_stops_the_runs_of_a_sweep_and_does_not_end_it():
    launcher = tasks()
    with launcher._interruptible(), launcher.open():
        signal.raise_signal(signal.SIGTERM)
    assert launcher.stopping == 1
    assert launcher.interrupted


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"cpus": 5}, "cpus=5: no node has that (at most cpus=4)"),
        ({"cpus": 2, "gpus": 1}, "cpus=2, gpus=1: no node has that (at most cpus=4, gpus=2)"),
        ({"gpus": 0.5, "memory_gb": 6}, "cpus=1, gpus=0.5, memory_gb=6: no node has that (at most"),
        ({"memory_gb": 9.5}, "cpus=1, memory_gb=9.5: no node has that (at most cpus=4, memory_gb=8)"),
    ],
)
def test_what_no_node_has_is_refused_as_a_run_would_wait_forever(wanted, said):
    with pytest.raises(UserError, match=re.escape(said)), tasks(**wanted).open():
        pytest.fail("it would wait")


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("wanted", [{"cpus": 4, "memory_gb": 8}, {"gpus": 2, "memory_gb": 4}])
def test_what_one_node_has_is_enough(wanted):
    with tasks(**wanted).open():
        pass


def test_what_keeps_a_task_from_its_run_is_an_error_with_its_message(monkeypatch, tmp_path):
    def get(task):
        raise RayTaskError("_work", "Traceback ...", FileNotFoundError(2, "No such file", "/home/x"), ip="127.0.0.1")

    monkeypatch.setattr(ray, "get", get)
    ending = tasks()._ending("task", Job(RunFolder(tmp_path), "x", []))
    assert ending.cause == Cause("error", "FileNotFoundError: [Errno 2] No such file: '/home/x'")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cpus": 0}, "cpus=0: allowed: numbers above 0"),
        ({"gpus": 1.5}, "gpus=1.5: allowed: 0, a share of one, or whole ones"),
        ({"memory_gb": 0}, "memory_gb=0: allowed"),
        ({"retries": -1}, "retries=-1: allowed: 0 and more"),
        ({"jobs": 0}, "jobs=0: allowed: 1 and more"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, said):
    usual = {"cpus": 1, "gpus": 0, "memory_gb": None, "retries": 3, "jobs": None}
    with pytest.raises(UserError, match=re.escape(said)):
        Resources.of(**{**usual, **settings})


def test_a_cluster_that_does_not_answer_is_said_at_once():
    with pytest.raises(UserError, match="no cluster answers"):
        _connect("127.0.0.1:9")
