"""What a plain installation can do: judge frames and tables, and run, report, pack and verify studies of commands."""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "pytorch_lightning", "sentencepiece", "sacrebleu", "safetensors", "jaxtyping", "num2words")
TOLD = ("wandb", "optuna", "matplotlib")
BLOCKED = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY + TOLD}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
FIND = """
import importlib.util as util
found = util.find_spec
def find_spec(name, package=None):
    try:
        return found(name, package)
    except ModuleNotFoundError:
        return None
util.find_spec = find_spec
"""
FRAME = """
import ablab
rows = [{"side": s, "seed": n, "accuracy": v + n % 3 * v / 20} for s, v in (("a", 1), ("b", 2)) for n in range(4)]
found = ablab.judge(rows, "accuracy", arm="side", better="higher")
assert found.verdicts[0].outcome == "supported", found
found.page("page.html")
"""


def judge_and_run(python, folder, environment):
    """Judge a frame, then begin, run, report, pack and verify a study of a command."""

    def typed(*words, code=0):
        done = subprocess.run([python, *words], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    typed("-c", FRAME)
    assert "is better" in (folder / "page.html").read_text()
    typed("-m", "ablab", "new", "mine", "kind=command")
    for path in (folder / "mine").iterdir():
        shutil.move(path, folder)
    typed("-m", "ablab", "train", "-m", "experiment=schedule")
    said = typed("-m", "ablab", "report", "experiment=schedule")
    assert "A cosine schedule is better than a constant rate" in said
    assert "matplotlib is not installed; pip install 'ablab[train]' brings it" in said
    made = folder / "outputs/reports/schedule"
    assert not list(made.glob("*.png"))
    assert "png" not in (made / "report.md").read_text()
    assert json.loads((made / "report.json").read_text())["claims"][0]["outcome"] == "supported"
    typed("-m", "ablab", "pack", "experiment=schedule")
    assert "none is broken" in typed("-m", "ablab", "verify", "experiment=schedule")
    said = typed("-m", "ablab", "train", "logger=none", code=2)
    assert said.splitlines()[-1].startswith("error: ")
    assert "num2words" in said, "which the default corpus needs"


@pytest.mark.slow
def test_without_the_extras_commands_and_frames_are_judged(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(BLOCKED + FIND)
    places = [str(tmp_path / "site"), *os.environ.get("PYTHONPATH", str(ROOT / "src")).split(os.pathsep)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    judge_and_run(sys.executable, tmp_path, {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PATH": path})


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_wheel_alone_does_so_in_an_empty_environment(tmp_path):
    """It asks the package index for what the wheel needs, and for nothing else."""
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), "."]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("ablab-*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True, capture_output=True)
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PATH"] = f"{Path(python).parent}{os.pathsep}{environment['PATH']}"
    (tmp_path / "work").mkdir()
    judge_and_run(python, tmp_path / "work", environment)
