"""A user's folder, with a command and its study."""

import os
import sys
from pathlib import Path

import pytest

from tests.tasks.commands import STUDY, TRAIN


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A user's folder: a script and an experiment. `python` is the one that tests run with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    Path("train.py").write_text(TRAIN)
    Path("experiments").mkdir()
    Path("experiments/lr.yaml").write_text(STUDY)
    return tmp_path
