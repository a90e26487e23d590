"""A run of SCHEMA 1 stays usable: opened, translated with, pruned and reported as what it was, and marked."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.fields import SCHEMA
from ablab.store.records import Record
from ablab.store.run_folder import RunFolder
from tests.archives import unpack
from tests.run.conftest import typed

STORE = Path(__file__).parents[1] / "stores" / "schema_1.tar.xz"
RUN = "r9c4670612c7"
LINE = (
    *("trainer.threads=1", "logger=none", "model.d_model=16", "model.d_ff=16", "model.num_heads=2"),
    *("model.encoder_layers=2", "model.decoder_layers=2", "norm=scalenorm_fixnorm", "drophead=vshape"),
    *("layerdrop=0.2", "data.train_size=300", "data.valid_size=4", "data.test_size=4"),
    *("data.vocab_size=120", "data.max_tokens=60", "optim.lr=0.01", "optim.batch_tokens=256"),
    *("optim.warmup_steps=5", "training.max_steps=20", "training.valid_every=10", "pruning=none"),
    *("decoding=greedy", "decoding.max_extra_tokens=5"),
)
"""What was typed for it, in the words of then."""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> Path:
    """The store as the code of then left it, without the last checkpoint and the prepared corpus."""
    folder = tmp_path_factory.mktemp("schema_1")
    with tarfile.open(STORE) as packed:
        unpack(packed, folder)
    return folder


@pytest.fixture(scope="module")
def record(outputs) -> Record:
    found = RunFolder(outputs / "runs" / RUN).record()
    assert found is not None
    assert found.schema_version == 1
    return found


def test_its_settings_are_read_in_the_fields_of_today(record):
    settings = record.settings
    assert settings["norm"] == {"kind": "scalenorm", "learn_g": True}
    assert settings["placement"] == {"kind": "pre"}
    assert settings["embedding"] == {"kind": "fixnorm"}
    assert settings["schedule"] == {"kind": "noam", "warmup_steps": 5}
    assert settings["drophead"]["kind"] == "vshape"
    assert settings["pruning"] == {"kind": "none"}


def test_its_weights_still_mean_what_they_meant(outputs, record, capsys):
    """Pruned anew, the whole model has the validation loss on record, so that every part was put back in its place."""
    words = (f"run={RUN}", f"outputs={outputs}", "pruning=first", "pruning.curves=[decoder]", "save=none")
    assert main(["prune", *words]) == 0
    assert f"{RUN} is of SCHEMA 1" in capsys.readouterr().out
    (curve,) = RunFolder(outputs / "runs" / RUN).curves()
    whole = max(curve.points, key=lambda point: len(point.decoder))
    assert whole.valid["loss"] == pytest.approx(record.selected.scores["loss"], rel=1e-5)


def test_it_translates(outputs, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"fifty-one;\n")))
    assert main(["translate", f"run={RUN}", f"outputs={outputs}"]) == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 1
    assert f"{RUN} is of SCHEMA 1" in said.err


def test_a_report_marks_it(outputs):
    assert main(["report", f"runs={RUN}", f"outputs={outputs}", "resamples=1000"]) == 0
    (report,) = (outputs / "reports").glob("*/report.json")
    (arm,) = json.loads(report.read_text())["arms"]
    assert any("older SCHEMA" in note for note in arm["notes"])


def test_its_line_trains_anew(outputs):
    assert typed(*LINE, f"outputs={outputs}").code == 0
    runs = sorted(path.name for path in (outputs / "runs").iterdir() if path.is_dir())
    assert len(runs) == 2
    (other,) = (run for run in runs if run != RUN)
    found = RunFolder(outputs / "runs" / other).record()
    assert found is not None
    assert found.schema_version == SCHEMA
