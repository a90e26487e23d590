"""Stopped and continued is the same as never stopped, bit for bit."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ablab.commands.cli import main
from ablab.store.metrics import read_metrics
from ablab.store.run_folder import RunFolder
from ablab.transformer.stages.callbacks import MetricsCallback
from ablab.transformer.training.distributed import SingleProcess
from tests.run.conftest import TINY, typed

ROOT = Path(__file__).parents[2]

LINE = (
    *TINY,
    "logger=none",
    "data.train_size=300",
    "data.valid_size=4",
    "data.test_size=4",
    "data.vocab_size=200",
    "data.max_tokens=60",
    "optim.batch_tokens=256",
    "schedule.warmup_steps=20",
    "training.max_steps=120",
    "training.valid_every=60",
    *("training.select=averaged", "training.average_last=2"),
    "decoding=greedy",
    "decoding.max_extra_tokens=5",
)


def _run(outputs: Path) -> RunFolder:
    (found,) = [path for path in (outputs / "runs").iterdir() if path.is_dir()]
    return RunFolder(found)


def _weights(run: RunFolder) -> dict[str, torch.Tensor]:
    return load_file(run.checkpoints / "selected.safetensors")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> RunFolder:
    outputs = tmp_path_factory.mktemp("undisturbed")
    assert typed(*LINE, f"outputs={outputs}").code == 0
    return _run(outputs)


def _same(run: RunFolder, other: RunFolder) -> None:
    """Weights, what validation said, and the curves, apart from the clock."""
    assert run.run_id == other.run_id
    ours, theirs = _weights(run), _weights(other)
    assert set(ours) == set(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert run.record().validations == other.record().validations
    assert run.record().selected == other.record().selected
    assert run.record().cost.tokens == other.record().cost.tokens
    clock = {"seconds", "tokens_per_second"}
    curves = [
        [{key: row[key] for key in set(row) - clock} for row in read_metrics(folder.metrics)] for folder in (run, other)
    ]
    assert len(curves[0]) >= 14
    assert curves[0] == curves[1]


def test_the_undisturbed_run_learnt_something(undisturbed):
    """Or the equalities below would say little."""
    losses = [validation["loss"] for validation in undisturbed.record().validations]
    assert losses[-1] < losses[0]
    assert len(losses) == 2


@pytest.mark.parametrize(
    ("number", "at"),
    [(signal.SIGINT, 23), pytest.param(signal.SIGTERM, 60, marks=pytest.mark.slow), (signal.SIGHUP, 20)],
    ids=lambda value: str(value),
)
def test_a_signal_ends_with_a_checkpoint_and_the_same_line_continues(number, at, undisturbed, tmp_path, monkeypatch):
    """At step 23 between two rows of the curves, at step 60 where a validation is due."""
    if number == signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)  # under nohup it is ignored, and a run goes on, as it was asked to
    line = (*LINE, f"outputs={tmp_path}")
    with monkeypatch.context() as patch:
        original = MetricsCallback.on_step

        def on_step(self, state, total_steps):
            original(self, state, total_steps)
            if state.step == at:
                signal.raise_signal(number)

        patch.setattr(MetricsCallback, "on_step", on_step)
        stopped = typed(*line)
    assert stopped.code == 130
    assert "continues from there" in stopped.out
    run = _run(tmp_path)
    assert run.record() is None
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)

    continued = typed(*line)
    assert continued.code == 0
    assert "continues from step" in continued.out
    _same(run, undisturbed)


def test_a_signal_after_the_loop_has_decided_to_go_on_ends_the_next_step(undisturbed, tmp_path, monkeypatch):
    """Lightning alone would end training there, with nothing saved and its workers waiting for a step."""
    line = (*LINE, f"outputs={tmp_path}")
    with monkeypatch.context() as patch:
        at = iter(range(1, 121))

        def go_on(self, validation):
            if next(at) == 23:
                signal.raise_signal(signal.SIGTERM)

        patch.setattr(SingleProcess, "go_on", go_on)
        stopped = typed(*line)
    assert stopped.code == 130
    assert "stopped at step 24" in stopped.out
    continued = typed(*line)
    assert "continues from step 24" in continued.out
    _same(_run(tmp_path), undisturbed)


def test_a_second_signal_ends_at_once_as_one_that_stopped(tmp_path, monkeypatch, capsys):
    """And not with Lightning's exit code, that of a failure."""

    def on_step(self, state, total_steps):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(MetricsCallback, "on_step", on_step)
    assert main(["train", *LINE, f"outputs={tmp_path}"]) == 130
    assert capsys.readouterr().err.endswith("stopped\n")


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("step\n")], ids=["gone", "cut"])
def test_curves_damaged_after_the_last_step_are_mended_before_they_are_sealed(damage, tmp_path, monkeypatch):
    line = (*TINY, "smoke=true", "logger=none", "pruning=none", "decoding=greedy", f"outputs={tmp_path}")

    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_record", kill)
        assert typed(*line).code == 130
    run = _run(tmp_path / "smoke")
    damage(run.metrics)
    continued = typed(*line)
    assert continued.code == 0
    assert "metrics.csv was damaged: it has the validations again" in continued.out
    validated = [row["step"] for row in read_metrics(run.metrics) if "valid_loss" in row]
    assert validated == [validation["step"] for validation in run.record().validations]


def _start_and_kill(line: tuple[str, ...], outputs: Path, number: int, at: int) -> subprocess.CompletedProcess[str]:
    """A process of its own, sent the signal once its curves reach step `at`."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        for path in (outputs / "runs").glob("*/metrics.csv"):
            with contextlib.suppress(ValueError):
                if any(row["step"] >= at for row in read_metrics(path)):
                    process.send_signal(number)
                    out, err = process.communicate(timeout=60)
                    return subprocess.CompletedProcess([], process.returncode, out, err)
        time.sleep(0.005)
    process.kill()
    out, err = process.communicate()
    raise AssertionError(f"it ended before step {at}: {out}{err}")


@pytest.mark.slow
def test_a_killed_process_loses_nothing(undisturbed, tmp_path):
    done = _start_and_kill((*LINE, f"outputs={tmp_path}"), tmp_path, signal.SIGKILL, at=70)
    assert done.returncode == -signal.SIGKILL
    run = _run(tmp_path)
    assert run.record() is None
    continued = typed(*LINE, f"outputs={tmp_path}")
    assert continued.code == 0
    assert "continues from step" in continued.out
    _same(run, undisturbed)


@pytest.mark.slow
def test_a_stopped_process_says_so_by_its_exit_code(tmp_path):
    done = _start_and_kill((*LINE, f"outputs={tmp_path}"), tmp_path, signal.SIGINT, at=10)
    assert done.returncode == 130
    assert done.stderr == ""
    assert "continues from there" in done.stdout
    assert _run(tmp_path).record() is None
    assert (_run(tmp_path).checkpoints / "last.pt").exists()
