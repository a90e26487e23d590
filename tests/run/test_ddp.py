"""A run on two devices, or under torchrun, is the run on one: the same numbers, and no process is left behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from ablab.config import compose
from ablab.store.metrics import read_metrics
from ablab.store.run_folder import RunFolder
from ablab.transformer.data.prepared import Prepared
from ablab.transformer.stages.callbacks import MetricsCallback
from ablab.transformer.translation.training import build_steps
from tests.run.conftest import TINY, typed

FRESH = multiprocessing.get_context("forkserver")

LINE = (
    *TINY,
    "logger=none",
    "pruning=none",
    "layerdrop_rates=learned",
    "model.word_dropout=0.1",
    "data.train_size=300",
    "data.valid_size=4",
    "data.test_size=4",
    "data.vocab_size=200",
    "data.max_tokens=60",
    "optim=plateau",
    "optim.lr=0.2",
    "optim.batch_tokens=64",
    "schedule.decay_patience=1",
    "training.max_steps=60",
    "training.valid_every=10",
    "training.select=last",
    "decoding=greedy",
    "decoding.max_extra_tokens=5",
)
"""Everything random is on, some steps have a single sentence, and the learning rate depends on validation."""

ONE = "trainer.micro_batches=2"
TWO = ("trainer=ddp", "trainer.accelerator=cpu", "trainer.threads=2")  # a thread for each
CLOCK = {"seconds", "tokens_per_second"}


def the_run(outputs: Path) -> RunFolder:
    (found,) = [path for path in (outputs / "runs").iterdir() if path.is_dir()]
    return RunFolder(found)


def same(run: RunFolder, other: RunFolder) -> None:
    """Weights, validations and curves, apart from the clock."""
    ours, theirs = (load_file(r.checkpoints / "selected.safetensors") for r in (run, other))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert run.run_id == other.run_id
    assert run.record().validations == other.record().validations
    assert run.record().cost.tokens == other.record().cost.tokens
    one, two = (
        {(row["step"], "loss" in row): {k: row[k] for k in set(row) - CLOCK} for row in read_metrics(r.metrics)}
        for r in (run, other)
    )
    shared = one.keys() & two.keys()
    assert len(shared) >= 10
    assert all(one[key] == two[key] for key in shared)


def children(pid: int) -> set[int]:
    """Of process `pid`."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return {int(child) for child, parent, name in rows if int(parent) == pid and name != "ps"}


def alive(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def _train(line: tuple[str, ...], errors: Path) -> None:
    """In a process of its own, that the tests can kill."""
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
    os._exit(typed(*line).code)


def started(outputs: Path, at: int) -> tuple[Any, int]:
    """A run on two devices in a process of its own, once its curves reach step `at`; and who follows it."""
    process = FRESH.Process(target=_train, args=((*LINE, *TWO, f"outputs={outputs}"), outputs / "errors"))
    process.start()
    deadline = time.monotonic() + 120
    while process.is_alive() and time.monotonic() < deadline:
        for path in (outputs / "runs").glob("*/metrics.csv"):
            if any(row["step"] >= at for row in read_metrics(path)):
                (follower,) = children(process.pid)
                return process, follower
        time.sleep(0.005)
    process.kill()
    raise AssertionError(f"it ended before step {at}: {(outputs / 'errors').read_text()}")


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> RunFolder:
    FRESH.set_forkserver_preload(["ablab.transformer.translation.prune_curve", "ablab.transformer.stages.train"])
    outputs = tmp_path_factory.mktemp("alone")
    assert typed(*LINE, ONE, f"outputs={outputs}").code == 0
    return the_run(outputs)


@pytest.mark.slow
def test_the_run_has_what_could_go_wrong(alone):
    """Or the equalities below would say little."""
    config = compose([*LINE, ONE]).config
    steps = build_steps(config, Prepared(alone.outputs / "corpora" / alone.record().data["corpus"]))
    assert any(len(steps[index]) == 1 for index in range(60))  # fewer sentences than devices
    rates = {row["learning_rate"] for row in read_metrics(alone.metrics) if "loss" in row}
    assert len(rates) > 1
    losses = [validation["loss"] for validation in alone.record().validations]
    assert min(losses) < losses[0]


@pytest.mark.slow
def test_two_devices_stopped_and_continued_are_one(alone, tmp_path, monkeypatch):
    """Bit for bit: with one part a device the sums are the same sums."""
    line, before = (*LINE, *TWO, f"outputs={tmp_path}"), children(os.getpid())
    with monkeypatch.context() as patch:
        original = MetricsCallback.on_log

        def on_log(self, measurements):
            original(self, measurements)
            if measurements.step == 40:
                signal.raise_signal(signal.SIGINT)

        patch.setattr(MetricsCallback, "on_log", on_log)
        stopped = typed(*line)
    assert stopped.code == 130
    assert "continues from there" in stopped.out
    assert children(os.getpid()) == before
    continued = typed(*line)
    assert continued.code == 0
    assert "continues from step 40" in continued.out
    assert children(os.getpid()) == before
    run = the_run(tmp_path)
    same(run, alone)
    assert run.record().runtime["trainer"]["devices"] == 2


@pytest.mark.slow
def test_a_device_that_is_lost_ends_the_run_and_it_can_go_on(alone, tmp_path):
    process, follower = started(tmp_path, at=20)
    os.kill(follower, signal.SIGKILL)
    process.join(60)
    assert process.exitcode == 1
    said = (tmp_path / "errors").read_text()
    assert said.startswith("error: device 1 of 2: its process was killed by SIGKILL")
    assert said.count("\n") == 1
    # What was kept is whole: one device can go on with it.
    assert typed(*LINE, ONE, f"outputs={tmp_path}").code == 0
    same(the_run(tmp_path), alone)


@pytest.mark.slow
def test_signals_to_all_processes_end_the_run_with_a_checkpoint(tmp_path):
    process, follower = started(tmp_path, at=20)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        os.kill(follower, number)
    os.kill(process.pid, signal.SIGTERM)
    process.join(60)
    assert process.exitcode == 130
    assert not alive(follower)
    assert (tmp_path / "errors").read_text() == ""
    assert the_run(tmp_path).continues


@pytest.mark.slow
def test_a_killed_run_leaves_no_process(tmp_path):
    process, follower = started(tmp_path, at=20)
    process.kill()
    process.join(60)
    deadline = time.monotonic() + 10
    while alive(follower) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(follower)
    assert (tmp_path / "errors").read_text() == ""


@pytest.fixture
def torchrun(tmp_path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """`torchrun train.py ...` with two processes. One that a test fails to wait for is ended, and its pipe closed."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> "subprocess.Popen[str]":
        launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}  # torchrun warns, and leaves logs
        with (tmp_path / "errors").open("a") as errors:
            process = subprocess.Popen(
                [*launcher, "train.py", *LINE, *TWO, f"outputs={tmp_path}", *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.kill()


def at_step(process: "subprocess.Popen[str]", outputs: Path, step: int) -> list[int]:
    """The two processes of a run under torchrun, once its curves reach the step."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        for path in (outputs / "runs").glob("*/metrics.csv"):
            if any(row["step"] >= step for row in read_metrics(path)):
                return sorted(children(process.pid))
        time.sleep(0.005)
    raise AssertionError(f"it ended before step {step}: {(outputs / 'errors').read_text()}")


@pytest.mark.slow
def test_under_torchrun_stopped_and_continued_it_is_the_same_run(alone, torchrun, tmp_path):
    process = torchrun()
    ranks = at_step(process, tmp_path, 20)
    process.send_signal(signal.SIGINT)
    assert "continues from there" in process.communicate(timeout=60)[0]
    assert not any(alive(rank) for rank in ranks)
    (tmp_path / "errors").unlink()  # torchrun says that it was interrupted
    process = torchrun()
    os.kill(at_step(process, tmp_path, 40)[0], signal.SIGTERM)
    assert "continues from there" in process.communicate(timeout=60)[0]
    assert process.returncode == 0  # to torchrun, a checkpoint on request is no failure
    process = torchrun()
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert out.count("continues from step") == 1
    assert out.count("Results:") == 1
    assert (tmp_path / "errors").read_text() == ""
    same(the_run(tmp_path), alone)
    process = torchrun()
    assert "nothing is trained again" in process.communicate(timeout=60)[0]
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_of_torchrun_that_is_killed_ends_all(victim, torchrun, tmp_path):
    process = torchrun()
    ranks = at_step(process, tmp_path, 20)
    os.kill(ranks[victim], signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == 1
    assert not any(alive(rank) for rank in ranks)
    said = (tmp_path / "errors").read_text()
    assert "SIGKILL" in said  # torchrun names the process
    assert said.count("error: one of 2 devices was lost: ") == said.count("the same line continues the run") == victim


def test_torchrun_must_have_started_as_many_processes_as_devices(torchrun, tmp_path):
    process = torchrun("trainer.devices=4")
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    said = (tmp_path / "errors").read_text()
    assert said.count("error: trainer.devices=4: torchrun's WORLD_SIZE is 2; allowed: 2; where") == 1
    assert "rank      : 0 " in said.split("Root Cause")[1]
    assert not (tmp_path / "runs").exists()
