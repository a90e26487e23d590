"""A place to work in, with a declared study and a declared search."""

from pathlib import Path

import pytest

from ablab.study.definition import define
from ablab.study.study import Study
from tests.run.conftest import TINY

SMALL = (*TINY, "smoke=true", "logger=none", "pruning=none")
"""Words of runs that take seconds."""

STUDY = """
question: Does it help?
common: [model.d_model=16, model.num_heads=2]
factors: {norm: [pre, scalenorm], layerdrop: [0, 0.2]}
design: one_at_a_time
seeds: [1, 2]
"""

SEARCH = """
question: Which values are best?
common: [smoke=true, logger=none, model.d_model=16, model.num_heads=2, model.encoder_layers=2, model.decoder_layers=1]
search:
  space: {optim.lr: {low: 0.001, high: 0.1, log: true}, layerdrop: {low: 0, high: 0.4}}
  trials: 3
seeds: [101, 102]
claims: [{arm: best, expect: greater}]
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: nothing in it but the experiments `help` and `find`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "help.yaml").write_text(STUDY)
    (tmp_path / "experiments" / "find.yaml").write_text(SEARCH)
    return tmp_path


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Three seeds of one arm, of which none has begun."""
    return define((*SMALL, "seed=1,2,3", f"outputs={tmp_path}"))
