"""A field that is added to the schema later renames no run: every store made without it is found and used as before."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ablab.store.run_folder import RunFolder
from ablab.transformer.stages.callbacks import MetricsCallback
from tests.run.conftest import TINY, typed

ROOT = Path(__file__).parents[2]
LINE = (
    *TINY,
    "logger=none",
    *("data.train_size=300", "data.valid_size=4", "data.test_size=4", "data.vocab_size=200", "data.max_tokens=60"),
    *("optim.batch_tokens=256", "schedule.warmup_steps=5", "training.max_steps=20", "training.valid_every=10"),
    *("pruning=none", "decoding=greedy", "decoding.max_extra_tokens=5"),
)
DONE, STOPPED = (*LINE, "seed=1"), (*LINE, "seed=2")
FIELD = "    later: Annotated[float, Field(ge=0), Formerly(0.5)]\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """A finished run and an interrupted one, made by the code as it is."""
    outputs = tmp_path_factory.mktemp("store")
    assert typed(*DONE, f"outputs={outputs}").code == 0

    def stop_at_10(self, measurements, original=MetricsCallback.on_log):
        original(self, measurements)
        if measurements.step == 10:
            signal.raise_signal(signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MetricsCallback, "on_log", stop_at_10)
        assert typed(*STOPPED, f"outputs={outputs}").code == 130
    return outputs


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> Path:
    """The code with one more field of `model`, and the files that set it."""
    folder = tmp_path_factory.mktemp("grown")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "conf", folder / "conf")
    schema = folder / "src" / "ablab" / "transformer" / "config" / "schema.py"
    text = schema.read_text()
    assert text.count("class Model(Group):") == 1
    before, after = text.split("    d_model: ", 1)
    schema.write_text(f"{before}{FIELD}    d_model: {after}")
    for file in (folder / "conf" / "model").glob("*.yaml"):
        file.write_text(file.read_text().replace("model:\n", "model:\n  later: 0.5\n", 1))
    return folder


PROGRAM = """
import sys
from ablab.commands.cli import main
for line in sys.argv[1].splitlines():
    print("code", main(line.split()))
"""


def _ablab(grown: Path, *lines: str) -> str:
    """These commands by the grown code, one after the other in one process: what they print."""
    environment = {**os.environ, "PYTHONPATH": f"{grown}/src", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=grown, check=False)
    assert done.stdout.count("code 0\n") == len(lines), done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_every_run_is_found_continued_evaluated_pruned_and_reported(store, grown, tmp_path):
    outputs = tmp_path / "outputs"
    shutil.copytree(store, outputs)
    runs = _runs(outputs)
    (done,) = (run for run in runs if RunFolder(outputs / "runs" / run).record() is not None)
    finished, stopped = " ".join(("train", *DONE)), " ".join(("train", *STOPPED))
    said = _ablab(
        grown,
        f"{finished} outputs={outputs}",
        f"{stopped} outputs={outputs}",
        f"{finished} outputs={outputs} decoding.max_extra_tokens=3",
        f"prune run={done} outputs={outputs} pruning=first pruning.curves=[decoder] save=none",
        f"report runs={','.join(runs)} outputs={outputs} resamples=1000",
    )
    assert said.count("continues from step 10") == 1
    assert len(list((outputs / "runs" / done / "evaluations").glob("*.json"))) > 1
    assert len(list((outputs / "runs" / done / "curves").glob("*.json"))) == 1
    assert _runs(outputs) == runs
    assert all(RunFolder(outputs / "runs" / run).record() is not None for run in runs)


@pytest.mark.slow
def test_another_value_of_it_is_another_run(store, grown, tmp_path):
    outputs = tmp_path / "outputs"
    shutil.copytree(store, outputs)
    before = _runs(outputs)
    _ablab(grown, " ".join(("train", *DONE, "model.later=0.6", "training.max_steps=10", f"outputs={outputs}")))
    assert len(_runs(outputs)) == len(before) + 1


def _runs(outputs: Path) -> list[str]:
    return sorted(path.name for path in (outputs / "runs").iterdir() if path.is_dir())
