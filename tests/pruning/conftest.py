"""A run that is deep enough to lose layers, with the curve that every run gets."""

import contextlib
import io

import pytest

from ablab.commands.cli import main
from tests.run.conftest import Said, Store, shared_store

DEEPER = ("model.decoder_layers=3", "seed=5")


@pytest.fixture(scope="session")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """2+3 layers."""
    return shared_store("deep", tmp_path_factory, *DEEPER, "logger=none")


def pruned(deep: Store, *words: str) -> Said:
    """`python prune.py run=<the deep run> <words>`, in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(["prune", f"run={the_run(deep).path}", *words])
    return Said(code, out.getvalue())


def the_run(deep: Store):
    """The only one."""
    (run,) = deep.runs
    return run
