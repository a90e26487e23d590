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

from ablab.code.code import VERSION
from ablab.commands.cli import main
from ablab.errors import BAD_INPUT, DONE, FAILED
from ablab.store.run_folder import RunFolder
from tests.study.conftest import SMALL

ROOT = Path(__file__).parents[2]
WORDS = (*SMALL, "hydra.launcher.jobs=2")


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


@pytest.mark.slow
def test_a_machine_without_gpu_is_said_once_and_leaves_no_failures(tmp_path, capsys):
    lacking = ("trainer=ddp", "trainer.devices=99")
    with contextlib.redirect_stdout(io.StringIO()):
        code = main(["train", "-m", *WORDS, *lacking, "norm=pre,post", "seed=1", f"outputs={tmp_path}"])
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
    said = out.splitlines()
    at = next(number for number, line in enumerate(said) if "data.max_tokens=1, seed 1: failed" in line)
    assert Path(said[at + 1].removeprefix("  log: ")).is_file()
    assert "2 failed" in out
    assert out.count("2 runs failed (error)") == 1  # they failed alike
    assert "\n  runs: data.max_tokens=1, seeds 1, 2\n" in out
    assert "retry_failed=true" in out
    lines = [line for line in out.splitlines() if line.startswith(("data.max_tokens=60", "data.max_tokens=1 "))]
    assert len(lines) == 2
    assert lines[1].endswith("2 failed")


def test_runs_that_failed_before_they_began_are_runs_of_the_store(swept, capsys):
    store = f"outputs={swept[0] / 'smoke'}"
    failed = [run.run_id for run in runs(swept[0]) if run.record() is None]
    assert main(["ls", "where=state=failed", "columns=id", "format=csv", store]) == 0
    assert sorted(capsys.readouterr().out.split()[1:]) == failed
    assert main(["show", f"run={failed[0]}", store]) == 0
    assert "failed" in capsys.readouterr().out
    assert main(["rm", "where=state=failed", "dry_run=true", store]) == 0
    assert "2 runs" in capsys.readouterr().out


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
    files = (path for path in (outputs / "smoke" / "runs").rglob("*") if path.is_file() and path.suffix != ".lock")
    before = {path: path.stat().st_mtime_ns for path in files}
    code, _ = typed("data.max_tokens=60,1", "seed=1,2", f"outputs={outputs}")
    assert code == FAILED  # there still are failures
    code, _ = typed("data.max_tokens=60", "seed=1,2", f"outputs={outputs}")
    assert code == DONE
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.slow
def test_failures_are_tried_again_when_asked(swept):
    outputs, _ = swept
    code, _ = typed("data.max_tokens=1", "seed=1,2", f"outputs={outputs}", "retry_failed=true")
    assert code == FAILED
    attempts = [
        json.loads(path.read_text())["attempts"] for path in (outputs / "smoke" / "runs").glob("*/failure.json")
    ]
    assert attempts == [2, 2]


@pytest.mark.slow
def test_a_seed_added_later_runs_alone_and_other_code_is_said(swept):
    outputs, _ = swept
    finished = [run for run in runs(outputs) if run.record() is not None]
    before = {run.run_id: (run.path / "record.json").read_text() for run in finished}
    one = finished[0].path / "record.json"
    content = json.loads(one.read_text())
    content["provenance"].update(code=f"{VERSION}:0ther", components={})
    one.write_text(json.dumps(content))
    code, out = typed("data.max_tokens=60", "seed=1,2,3", f"outputs={outputs}")
    assert code == DONE
    assert f"1 finished runs come from other code or versions (1 from code {VERSION}:0ther" in out
    assert "kept; rerun=stale trains them again" in out
    assert out.count("] one arm, seed 3") + out.count("] data.max_tokens=60, seed 3") == 1
    code, _ = typed("data.max_tokens=60", "seed=1,2,3", f"outputs={outputs}", "rerun=stale")
    assert code == DONE
    assert len(list((outputs / "smoke" / "superseded").iterdir())) == 1
    again = json.loads(one.read_text())
    assert again["selected"] == json.loads(before[one.parent.name])["selected"]


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert "Next: ablab report " in out
