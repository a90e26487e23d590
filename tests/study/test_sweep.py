"""The same line, typed again, runs only what is missing; failures are contained, named and retried by policy."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ablab.cli import main
from ablab.exits import BAD_INPUT, DONE, FAILED, INTERRUPTED
from ablab.failure import write_failure
from ablab.screen import Screen
from ablab.store import RunFolder
from ablab.study.definition import define
from ablab.study.ledger import State, entry_of
from ablab.study.sweep import Policy, sweep
from tests.run.conftest import TINY

ROOT = Path(__file__).parents[2]
WORDS = (*TINY, "smoke=true", "logger=none", "pruning=none", "hydra.launcher.jobs=2")


def started(*words):
    return subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), "-m", *WORDS, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )


def typed(*words):
    """In this process, whose server for runs need only start once."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["train", "-m", *WORDS, *words])
    assert err.getvalue() == ""
    return code, out.getvalue()


def runs(outputs):
    return [RunFolder(path) for path in sorted((outputs / "smoke" / "runs").iterdir()) if path.is_dir()]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Four runs of which two cannot be: no pair has so few tokens."""
    outputs = tmp_path_factory.mktemp("swept")
    return outputs, typed("data.max_tokens=60,1", "seed=1,2", f"outputs={outputs}")


def test_a_machine_without_gpu_is_said_once_and_leaves_no_failures(tmp_path, capsys):
    with contextlib.redirect_stdout(io.StringIO()):
        code = main(
            [
                "train",
                "-m",
                *WORDS,
                "norm=pre,post",
                "seed=1,2,3",
                "trainer=ddp",
                "trainer.devices=99",
                f"outputs={tmp_path}",
            ]
        )
    assert code == BAD_INPUT
    err = capsys.readouterr().err
    assert err.startswith("error: trainer.")
    assert "torch finds " in err
    assert err.count("\n") == 1
    assert not any(run.failure.exists() for run in runs(tmp_path))


def test_one_that_fails_leaves_the_others_alone(swept):
    outputs, (code, out) = swept
    assert code == FAILED
    assert Counter(run.record() is not None for run in runs(outputs)) == {True: 2, False: 2}
    assert out.count("data.max_tokens=1, seed 1: failed (error)") == 1
    assert "2 failed" in out
    assert "retry_failed=true" in out
    lines = [line for line in out.splitlines() if line.startswith(("data.max_tokens=60", "data.max_tokens=1 "))]
    assert len(lines) == 2
    assert lines[1].endswith("2 failed")


def test_the_study_links_its_runs_and_registers_what_it_asks(swept):
    outputs, _ = swept
    (folder,) = (outputs / "smoke" / "studies").iterdir()
    for link in folder.glob("*/*"):
        if link.is_symlink():
            assert (link / "log.txt").exists()
    assert {path.name for path in folder.glob("data.max_tokens=60/*")} == {"1", "2"}
    (registered,) = json.loads((folder / "registered.json").read_text())
    assert registered["runs_already_done"] == 0
    assert registered["seeds"] == [1, 2]


def test_typed_again_nothing_runs(swept):
    outputs, _ = swept
    before = {path: path.stat().st_mtime_ns for path in (outputs / "smoke" / "runs").rglob("*") if path.is_file()}
    code, _ = typed("data.max_tokens=60,1", "seed=1,2", f"outputs={outputs}")
    assert code == FAILED  # there still are failures
    code, _ = typed("data.max_tokens=60", "seed=1,2", f"outputs={outputs}")
    assert code == DONE
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_failures_are_tried_again_when_asked(swept):
    outputs, _ = swept
    code, _ = typed("data.max_tokens=1", "seed=1,2", f"outputs={outputs}", "retry_failed=true")
    assert code == FAILED
    attempts = [
        json.loads(path.read_text())["attempts"] for path in (outputs / "smoke" / "runs").glob("*/failure.json")
    ]
    assert attempts == [2, 2]


def test_a_seed_added_later_runs_alone_and_other_code_is_said(swept):
    outputs, _ = swept
    finished = [run for run in runs(outputs) if run.record() is not None]
    before = {run.run_id: (run.path / "record.json").read_text() for run in finished}
    one = finished[0].path / "record.json"
    content = json.loads(one.read_text())
    content["provenance"]["code"] = "0ther"
    one.write_text(json.dumps(content))
    code, out = typed("data.max_tokens=60", "seed=1,2,3", f"outputs={outputs}")
    assert code == DONE
    assert "1 finished runs come from other code or versions (1 from code 0ther" in out
    assert "kept; rerun=stale trains them anew" in out
    assert out.count("] one arm, seed 3") + out.count("] data.max_tokens=60, seed 3") == 1
    code, _ = typed("data.max_tokens=60", "seed=1,2,3", f"outputs={outputs}", "rerun=stale")
    assert code == DONE
    assert len(list((outputs / "smoke" / "superseded").iterdir())) == 1
    again = json.loads(one.read_text())
    assert again["selected"] == json.loads(before[one.parent.name])["selected"]


def test_any_launcher_of_hydra_makes_the_same_runs(swept, tmp_path):
    words = [word for word in WORDS if not word.startswith("hydra")]
    line = [*words, "hydra/launcher=basic", "data.max_tokens=60,1", "seed=1", f"outputs={tmp_path}"]
    process = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), "-m", *line],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert process.returncode == FAILED
    assert "2 runs: 1 failed  1 finished" in process.stdout
    outputs, _ = swept
    theirs = {run.run_id: run for run in runs(outputs)}
    for run in runs(tmp_path):
        other = theirs[run.run_id]
        assert (run.record() is None) == (other.record() is None)
        if run.record() is not None:
            ours = (run.checkpoints / "selected.safetensors").read_bytes()
            assert ours == (other.checkpoints / "selected.safetensors").read_bytes()


def test_two_at_once_run_nothing_twice(tmp_path):
    line = ("seed=1,2,3", f"outputs={tmp_path}")
    processes = [started(*line) for _ in range(2)]
    for process in processes:
        out, err = process.communicate(timeout=250)
        assert err == ""
        assert process.returncode == DONE, out
        assert "3 runs: " in out
    for run in runs(tmp_path):
        assert run.record() is not None
        assert (run.path / "log.txt").read_text().count("step      4") == 1


@pytest.fixture
def study(tmp_path):
    return define((*(word for word in WORDS if not word.startswith("hydra")), "seed=1,2,3", f"outputs={tmp_path}"))


class Fake:
    """A launcher that runs nothing: for each launch, how each run ends."""

    def __init__(self, *endings):
        self.endings, self.calls = list(endings), []

    def __call__(self, board, cells, alone, screen):
        self.calls.append(([cell.seed for cell in cells], alone))
        for cell, kind in zip(cells, self.endings.pop(0), strict=True):
            if kind == "stop":
                return False
            if kind is not None:
                write_failure(cell.planned.folder.failure, kind, "x", None, "now")
        return True


def swept_by(fake, study, policy=None):
    screen = Screen(bars=False)
    screen.console.file = io.StringIO()
    return sweep(study, fake, policy or Policy(), screen)


def test_memory_and_kills_are_tried_once_more_alone_and_errors_are_not(study):
    fake = Fake(["memory", "killed", "error"], ["memory", "killed"])
    assert swept_by(fake, study) == FAILED
    assert fake.calls == [([1, 2, 3], False), ([1, 2], True)]


def test_earlier_failures_wait_until_asked_for(study):
    for cell in study.cells[:2]:
        write_failure(cell.planned.folder.failure, "error", "x", None, "now")
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


def test_a_run_that_is_judged_in_two_ways_is_launched_once_at_a_time(tmp_path):
    words = [word for word in WORDS if not word.startswith("hydra")]
    fake = Fake(["error"], ["error"])
    swept_by(fake, define((*words, "decoding=beam,greedy", f"outputs={tmp_path}")))
    assert [len(seeds) for seeds, _ in fake.calls] == [1]


def test_odd_names_stay_within_the_study_and_apart(study, tmp_path):
    from dataclasses import replace

    from ablab.study.design import Arm
    from ablab.study.registry import link

    cell = study.cells[0]
    cell.planned.folder.path.mkdir(parents=True)
    names = ["..", "a/b", "a_b", "x" * 300, "norm=pre"]
    odd = replace(study, arms=[Arm(n, ()) for n in names], cells=[replace(cell, arm=n) for n in names])
    link(odd)
    link(odd)
    links = [path for path in odd.folder.rglob("*") if path.is_symlink()]
    assert len(links) == 5
    assert all(path.resolve() == cell.planned.folder.path.resolve() for path in links)


def test_stopped_is_stopped(study):
    assert swept_by(Fake(["stop", None, None]), study) == INTERRUPTED


def test_states_are_read_from_the_store(study):
    cell = study.cells[0]
    folder = cell.planned.folder
    assert entry_of(cell).state is State.PLANNED
    folder.begin(cell.planned.recipe)
    assert entry_of(cell).state is State.INTERRUPTED
    write_failure(folder.failure, "error", "x", None, "now")
    assert entry_of(cell).state is State.FAILED
    from ablab.run import alone

    with alone(folder):
        assert entry_of(cell).state is State.RUNNING
    assert entry_of(cell).state is State.FAILED


def test_a_run_elsewhere_is_alive_as_long_as_it_says_so(study):
    import time

    from ablab.pulse import DEAD, Pulse
    from ablab.run import BusyError, run

    cell = study.cells[0]
    folder = cell.planned.folder
    folder.path.mkdir(parents=True)
    pulse = Pulse(host="elsewhere", pid=1, began=0, updated=time.time())
    folder.pulse.write_text(pulse.model_dump_json())
    assert entry_of(cell).state is State.RUNNING
    with pytest.raises(BusyError, match="a process on elsewhere"):  # whatever its lock says here
        run(cell.planned, Screen(bars=False))
    folder.pulse.write_text(pulse.model_copy(update={"updated": time.time() - DEAD - 1}).model_dump_json())
    assert entry_of(cell).state is State.PLANNED


def test_words_that_only_an_experiments_own_options_understand(tmp_path):
    """Hydra knows no data.train before the experiment has said data=text."""
    for name in ("train", "valid", "test"):
        for language in ("en", "de"):
            lines = "".join(f"{letter} {other} {letter}\n" for letter in "abcdefgh" for other in "ijklmnop")
            (tmp_path / f"{name}.{language}").write_text(lines)
    (tmp_path / "own.yaml").write_text("{question: x, common: [data=text], factors: {norm: [pre]}, seeds: [1]}")
    files = [f"data.{name}={tmp_path / name}" for name in ("train", "valid", "test")]
    languages = ("data.src=en", "data.tgt=de", "data.vocab_size=30")
    code, out = typed(f"experiment={tmp_path / 'own.yaml'}", *files, *languages, f"outputs={tmp_path}")
    assert code == DONE, out
    assert "Next: python report.py " in out
