"""A small run, what an undisturbed one leaves, and the disturber."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ablab.files import sha256
from ablab.files.disk import half_written
from ablab.judge.custody import links
from ablab.store.chain import Chain
from ablab.store.metrics import read_metrics
from ablab.store.run_folder import SELECTED, all_runs
from tests.faults.disturber import Disturber
from tests.run.conftest import TINY

LINE = (
    *("train", "smoke=true", *TINY, "pruning=none", "decoding=greedy", "decoding.max_extra_tokens=2"),
    *("training.max_steps=6", "training.valid_every=3"),
)

CLOCK = {"seconds", "tokens_per_second"}


OF_NO_CONSEQUENCE = {".lock", ".pulse", ".owner"}
"""Ends of the names of files that say who is at work."""


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix not in OF_NO_CONSEQUENCE]


def result_of(outputs: Path) -> dict[str, Any]:
    """All that a store says of its runs, apart from the clock; whatever is broken or left over is part of it."""
    store = outputs / "smoke"
    chain = Chain.of(store)
    found: dict[str, Any] = {"register": [*chain.unreadable, *chain.broken]}
    found["files"] = sorted(str(path.relative_to(outputs)) for path in _files(outputs))
    found["corpora"] = {path.name: sha256(path) for path in _files(store / "corpora")}
    found["pictures"] = {path.name: sha256(path) for path in _files(store) if path.name == "cross_attention.png"}
    for run in all_runs(store):
        record = run.record()
        assert record is not None
        found[run.run_id] = {
            "state": record.state,
            "validations": record.validations,
            "selected": record.selected.steps,
            "weights": sha256(run.checkpoints / SELECTED),
            "tokens": record.cost.tokens,
            "curves": [{key: row[key] for key in set(row) - CLOCK} for row in read_metrics(run.metrics)],
            "scores": [(found.evaluation_id, found.scores) for found in run.evaluations()],
            "hypotheses": {found.evaluation_id: run.hypotheses(found.evaluation_id) for found in run.evaluations()},
            "broken": [link for link in links(run, chain) if link.fault is not None],
            "twice": sorted(chain.histories[run.run_id].made_again),
            "anew": len(chain.histories[run.run_id].replaced),
            "left": [path.name for folder in (run.path, run.checkpoints) for path in half_written(folder)],
            "failure": run.failure.exists(),
        }
    return found


@pytest.fixture(scope="session")
def disturber(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disturber]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler, which makes the interposer")
    scratch = tmp_path_factory.mktemp("interposer")
    library = scratch / "interposer.so"
    source = Path(__file__).with_name("interposer.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    disturber = Disturber(library, scratch)
    yield disturber
    disturber.close()


@pytest.fixture(scope="session")
def undisturbed(disturber, tmp_path_factory) -> tuple[int, dict[str, Any]]:
    """The number of calls below the store, and what the run leaves."""
    outputs = tmp_path_factory.mktemp("undisturbed")
    ended = disturber.run(*LINE, "logger=none", f"outputs={outputs}", below=outputs)
    assert ended.code == 0, ended.said
    return ended.calls, result_of(outputs)
