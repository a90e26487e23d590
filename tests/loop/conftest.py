"""A folder with a loop."""

import os
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.loop.loops import LOOP, TRAIN


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A user's folder with a loop, whose seeds are drawn alike each time: others now and then decide otherwise."""
    monkeypatch.setattr("ablab.sweep.loop_runs.secrets", SimpleNamespace(randbelow=random.Random(0).randrange))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    Path("train.py").write_text(TRAIN)
    Path("pause.txt").write_text("0")
    Path("experiments").mkdir()
    Path("experiments/loop.yaml").write_text(LOOP)
    return tmp_path
