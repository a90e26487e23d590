"""A store made under SCHEMA 2 before the files of the package were moved and renamed: every run in it goes on."""

import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.store.run_folder import RunFolder
from tests.archives import unpack
from tests.run.conftest import typed

STORE = Path(__file__).parents[1] / "stores" / "schema_2.tar.xz"
LINE = (
    *("trainer.threads=1", "logger=none", "model.d_model=16", "model.d_ff=32", "model.num_heads=2"),
    *("model.encoder_layers=2", "model.decoder_layers=2", "layerdrop=0.1", "drophead=vshape"),
    *("data.train_size=300", "data.valid_size=4", "data.test_size=4", "data.vocab_size=120", "data.max_tokens=60"),
    *("optim.lr=0.01", "optim.batch_tokens=256", "schedule.warmup_steps=20", "training.max_steps=200"),
    *("training.valid_every=100", "decoding.beam_size=2", "decoding.max_extra_tokens=5"),
)
FINISHED = {"rd4e2823b44e": "norm=pre", "rd1cd8eaadac": "norm=scalenorm_fixnorm"}
STOPPED = {"r6afc4c8c9f2": "norm=post"}
"""At step 100 of 200."""


@pytest.fixture
def outputs(tmp_path) -> Path:
    """As the code of then left it, without the prepared corpus."""
    with tarfile.open(STORE) as packed:
        unpack(packed, tmp_path)
    return tmp_path


@pytest.mark.parametrize("norm", FINISHED.values())
def test_a_finished_run_is_found_with_its_test_score_and_its_curve(norm, outputs):
    before = {path: path.read_bytes() for path in (outputs / "runs").rglob("*") if path.is_file()}
    said = typed(*LINE, norm, f"outputs={outputs}")
    assert said.code == 0
    assert "nothing is trained again" in said.out
    assert {path: path.read_bytes() for path in (outputs / "runs").rglob("*") if path.is_file()} == before


def test_an_interrupted_run_goes_on_from_its_checkpoint(outputs):
    """Libraries and code may have changed since, which `mixed=true` allows."""
    (run,), (norm,) = STOPPED, STOPPED.values()
    said = typed(*LINE, norm, f"outputs={outputs}", "mixed=true")
    assert said.code == 0
    assert "continues from step 100" in said.out
    record = RunFolder(outputs / "runs" / run).record()
    assert record is not None
    assert record.cost.steps == 200
    assert [stretch.first_step for stretch in record.stretches][:1] == [1]


def test_weights_still_mean_what_they_meant(outputs):
    """Pruned anew, the whole model has the validation loss on record, so that every part was put back in its place."""
    for run in FINISHED:
        folder = RunFolder(outputs / "runs" / run)
        shutil.rmtree(folder.path / "curves")
        assert main(["prune", f"run={run}", f"outputs={outputs}", "pruning=first", "pruning.curves=[decoder]"]) == 0
        (curve,) = folder.curves()
        whole = max(curve.points, key=lambda point: len(point.decoder))
        record = folder.record()
        assert record is not None
        assert whole.valid["loss"] == pytest.approx(record.selected.scores["loss"], rel=1e-5)


def test_it_translates(outputs, capsys, monkeypatch):
    for run in FINISHED:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"fifty-one;\n")))
        assert main(["translate", f"run={run}", f"outputs={outputs}"]) == 0
        assert capsys.readouterr().out.count("\n") == 1


def test_a_report_compares_its_runs_with_what_is_measured_today(outputs):
    assert main(["report", f"runs={','.join(FINISHED)}", f"outputs={outputs}", "resamples=1000", "verify=true"]) == 0
    (report,) = (outputs / "reports").glob("*/report.json")
    arms = json.loads(report.read_text())["arms"]
    assert len(arms) == 2
    assert not any("older SCHEMA" in note for arm in arms for note in arm["notes"])
