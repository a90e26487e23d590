"""Compiled layers: the same numbers, and nothing compiled anew whatever is left out and however long it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ablab.config import compose
from ablab.errors import UserError
from ablab.tasks.identity import recipe
from ablab.transformer.model import modes as compiling_layers
from ablab.transformer.model.modes import check_compiler
from tests.training.compiling import COMPARED, COUNTED, STEPS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def came_of_it():
    return compiling()


def compiling(*words):
    """In a process of its own."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.training.compiling", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, cwd=ROOT)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("norm", COUNTED)
def test_layerdrop_and_lengths_compile_nothing_anew(came_of_it, norm):
    """One graph for all encoder layers, one for all decoder layers."""
    assert came_of_it["graphs"][norm] == {"until": [2] * STEPS, "breaks": 0}


@pytest.mark.slow
def test_a_schedule_of_drophead_compiles_nothing_anew():
    until = compiling("drophead")["until"]
    assert len(until) == STEPS
    assert until[STEPS // 2] == until[-1]


@pytest.mark.slow
@pytest.mark.parametrize("norm", COMPARED)
def test_loss_and_gradients_are_those_of_the_model_as_written(came_of_it, norm):
    assert came_of_it["largest difference"][norm] < 1e-9


@pytest.mark.slow
def test_who_looks_inside_meets_the_model_as_written(came_of_it):
    assert came_of_it["graphs as written"] == 0


def test_without_a_compiler_it_is_refused(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(compiling_layers.shutil, "which", lambda _: None)
    with pytest.raises(UserError, match=r"trainer\.compile=true: no C\+\+ compiler.*allowed: false"):
        check_compiler()


def test_it_names_no_other_run():
    assert recipe(compose(["trainer.compile=true"]).config) == recipe(compose([]).config)
