"""A store with a study of two arms and two seeds, and runs that did not end."""

import shutil
from pathlib import Path

import pytest

from ablab.study.definition import define
from ablab.study.ledger import register
from tests.made_once import made_once
from tests.report.synthetic import fill

EXPERIMENT = """
question: Does it help?
common: [smoke=false, logger=none]
factors: {layerdrop: [0, 0.1]}
seeds: [1, 2]
claims: [{arm: layerdrop=0.1, expect: greater}]
"""


def _make(place: Path) -> list[str]:
    (place / "tried.yaml").write_text(EXPERIMENT)
    words = (f"experiment={place / 'tried.yaml'}",)
    study = define((*words, f"outputs={place / 'outputs'}"))
    register(study)
    errors = {"layerdrop=0": 0.3, "layerdrop=0.1": 0.1}
    fill(words, errors, outputs=place / "outputs", missing=frozenset({("layerdrop=0.1", 2)}), pruned=True)
    last = study.cells[-1].planned
    last.folder.begin(last.recipe)
    return [cell.planned.run_id for cell in study.cells]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Its folder, and the ids of its runs: three that finished, and one that was interrupted."""
    return made_once("api", _make, tmp_path_factory)


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """A copy to write into, as `outputs` of the working directory."""
    shutil.copytree(made[0], tmp_path / "place")
    monkeypatch.chdir(tmp_path / "place")
    return Path()


@pytest.fixture
def ids(made):
    return made[1]
