"""Runs as tasks of a Ray cluster: what the launcher asks of Ray, and what it says of what Ray answers."""

import re
import signal
import socket
import sys
import time
from types import SimpleNamespace

import pytest
import ray
from omegaconf import OmegaConf
from ray.exceptions import AuthenticationError, RayTaskError, RuntimeEnvSetupError

from ablab.errors import LostError, UserError
from ablab.store.run_folder import RunFolder
from ablab.sweep.hydra import check_hydra
from ablab.sweep.launchers import ray as ray_launcher
from ablab.sweep.launchers.base import Cause, Job
from ablab.sweep.launchers.ray import RayTasks, Resources, _carried, _connect
from hydra_plugins.ablab_hydra.launchers import RayLauncher


def test_a_run_finds_its_tracker_from_any_node(monkeypatch):
    there = {"MLFLOW_TRACKING_URI": "http://there:5000", "WANDB_ENTITY": "we", "ABLAB_CONFIG_DIR": "/options"}
    for name, value in {**there, "HOME_OF_ANOTHER": "/home"}.items():
        monkeypatch.setenv(name, value)
    assert there.items() <= _carried().items()
    assert "HOME_OF_ANOTHER" not in _carried()


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
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(gcs_address="127.0.0.1:1"))
    monkeypatch.setattr(ray, "remote", lambda **_: lambda function: function)
    yield
    signal.signal(signal.SIGTERM, before)


def tasks(**resources):
    wanted = {"cpus": 1, "gpus": 0, "memory_gb": None, "retries": 3}
    return RayTasks(None, Resources(**{**wanted, **resources}), None, {})


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


@pytest.mark.usefixtures("pretended")
def test_a_head_that_stays_away_is_one_line(monkeypatch):
    """Ray's own code would end the sweep after a minute, without a word of ours."""
    monkeypatch.setattr(ray_launcher, "ASK_EVERY", 0.0)
    server = socket.create_server(("127.0.0.1", 0))
    head = "{}:{}".format(*server.getsockname())
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(gcs_address=head))
    launcher = tasks()
    with launcher.open():
        clock = [time.monotonic()]
        monkeypatch.setattr(ray_launcher.time, "monotonic", lambda: clock[0])
        launcher._check_head()
        server.close()
        clock[0] += 20
        launcher._check_head()  # it may be back in a moment
        clock[0] += 20
        with pytest.raises(
            LostError, match=rf"the head of the Ray cluster, {head}, does not answer .*typed again, goes on"
        ):
            launcher._check_head()


@pytest.mark.usefixtures("pretended")
def test_rays_processes_have_the_environment_that_is_typed(monkeypatch):
    asked = []
    monkeypatch.setattr(ray, "init", lambda **settings: asked.append(settings))
    words = ["hydra/launcher=ray", "hydra.launcher.runtime_env.env_vars.A=1", "hydra.launcher.runtime_env.pip=[x]"]
    check_hydra(words, [])
    check_hydra(["hydra/launcher=ray", "hydra.launcher.runtime_env={env_vars: {A: b}}"], [])
    environment = OmegaConf.create({"env_vars": {"A": 1, "B": True, "C": "x"}})
    launcher = RayLauncher(None, 1, 0, None, None, 3, environment).make(None)
    with launcher.open():
        assert asked[0]["runtime_env"] == {"env_vars": {"A": "1", "B": "true", "C": "x"}}
    with tasks().open():
        assert "runtime_env" not in asked[1]


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"env_var": {}}, "hydra.launcher.runtime_env.env_var: no such field; allowed: conda, "),
        ({"env_vars": {"A": [1]}}, "hydra.launcher.runtime_env: "),
        ({"pip": ["x"], "conda": "y"}, "hydra.launcher.runtime_env: "),
    ],
)
def test_an_environment_that_ray_does_not_take_is_one_line(environment, said):
    with pytest.raises(UserError, match=re.escape(said)):
        RayLauncher(None, 1, 0, None, None, 3, environment)


@pytest.mark.usefixtures("pretended")
def test_a_cluster_that_asks_for_a_token_says_so(monkeypatch):
    def init(**_):
        raise ConnectionError("Failed to connect to Ray cluster at 10.0.0.1:6379") from AuthenticationError("no token")

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(UserError, match="the cluster asks for a token; set RAY_AUTH_MODE=token"):
        _connect("auto", {})


def test_an_environment_that_cannot_be_made_is_an_error_and_not_retried(monkeypatch, tmp_path):
    def get(task):
        raise RuntimeEnvSetupError("pip install failed\nERROR: No matching distribution found for x")

    monkeypatch.setattr(ray, "get", get)
    ending = tasks()._ending("task", Job(RunFolder(tmp_path), "x", []))
    assert ending.cause.kind == "error"
    assert ending.cause.line == "hydra.launcher.runtime_env: ERROR: No matching distribution found for x"


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
        _connect("127.0.0.1:9", {})
