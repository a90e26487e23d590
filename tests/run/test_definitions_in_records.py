"""A store whose records hold the definitions behind their code: it is read, continued and translated with."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from ablab.api import open as open_store
from ablab.code.code import code
from ablab.code.differences import changed_definitions, other_origin
from ablab.commands.cli import main
from ablab.store.run_folder import RunFolder
from tests.archives import unpack
from tests.run.conftest import typed

STORE = Path(__file__).parents[1] / "stores" / "definitions_in_records.tar.xz"
LINE = (
    *("trainer.threads=1", "logger=none", "pruning=none", "drophead=none", "decoding=greedy", "layerdrop=0.1"),
    *("model.d_model=16", "model.d_ff=32", "model.num_heads=2", "model.encoder_layers=2", "model.decoder_layers=2"),
    *("data.train_size=300", "data.valid_size=4", "data.test_size=4", "data.vocab_size=120", "data.max_tokens=60"),
    *("optim.lr=0.01", "optim.batch_tokens=256", "schedule.warmup_steps=20", "training.max_steps=80"),
    *("training.valid_every=40", "decoding.max_extra_tokens=5"),
)
FINISHED, STOPPED = "rbb3b5a86540", "r853afb0730b"
"""With norm=pre; with norm=post, at step 40 of 80."""


@pytest.fixture
def outputs(tmp_path) -> Path:
    """As the code of then left it, without the prepared corpus."""
    with tarfile.open(STORE) as packed:
        unpack(packed, tmp_path)
    return tmp_path


@pytest.fixture
def finished(outputs) -> RunFolder:
    return RunFolder(outputs / "runs" / FINISHED)


def inline(run: RunFolder) -> dict[str, dict[str, str]]:
    return json.loads((run.path / "record.json").read_text())["provenance"]["definitions"]


def test_what_has_changed_since_is_named(finished):
    recipe = finished.recipe()
    record = finished.record().model_copy(update={"stretches": []})
    recorded = {**record.provenance, "code": "2:000000000000", "components": {}}
    now = {**code("training", recipe).definitions}
    changed = changed_definitions(now, {**inline(finished)["training"], "derive": "0" * 8})
    recorded["definitions"] = {"training": {**recorded["definitions"]["training"], "derive": "0" * 8}}
    assert other_origin(recorded, recipe).startswith(f"code differs in {', '.join(changed[:4])}")


def test_it_is_listed_found_finished_and_left_as_it_is(finished, outputs):
    before = {path: path.read_bytes() for path in finished.path.rglob("*") if path.is_file()}
    (run,) = open_store(outputs).runs("state=finished")
    assert run.id == FINISHED
    assert run.record.provenance["definitions"] == inline(finished)
    said = typed(*LINE, "norm=pre", f"outputs={outputs}")
    assert said.code == 0
    assert "nothing is trained again" in said.out
    assert {path: path.read_bytes() for path in finished.path.rglob("*") if path.is_file()} == before
    assert not (outputs / "code").exists()


def test_an_interrupted_run_goes_on_and_its_record_is_of_today(outputs):
    """Libraries and code may have changed since, which `mixed=true` allows."""
    said = typed(*LINE, "norm=post", f"outputs={outputs}", "mixed=true")
    assert said.code == 0
    assert "continues from step 40" in said.out
    run = RunFolder(outputs / "runs" / STOPPED)
    entries = json.loads((run.path / "record.json").read_text())["provenance"]
    assert "definitions" not in entries
    assert (outputs / "code" / f"{entries['definitions_digest']}.json").is_file()
    assert len(run.record().stretches) == 2


def test_it_translates(outputs, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"fifty-one;\n")))
    assert main(["translate", f"run={FINISHED}", f"outputs={outputs}"]) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_it_is_verified_and_packed_without_a_file_of_code(outputs, tmp_path, capsys):
    """Of the store, the prepared corpus alone is missing."""
    assert main(["verify", f"run={FINISHED}", f"outputs={outputs}"]) == 1
    assert "corpora/46a52e8d1dcff368/" in " ".join(capsys.readouterr().out.split())
    archive = tmp_path / "a.zip"
    assert main(["pack", f"runs={FINISHED}", f"outputs={outputs}", f"to={archive}"]) == 0
    capsys.readouterr()
    main(["verify", f"archive={archive}"])
    assert "code/" not in capsys.readouterr().out
