"""`ablab export`: a model for CTranslate2, whole or pruned, compared with ours on the test set."""

import pytest

from ablab.cli import main

pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module")
def small(store):
    """A model that was cut out of the run."""
    assert main(["prune", f"run={store.run.path}", "save=1+1", "logger=none", "pruning.curves=[both]"]) == 0
    (place,) = store.run.pruned.iterdir()
    return place


@pytest.mark.parametrize("quantization", ["float32", "int8"])
@pytest.mark.parametrize("which", ["whole", "pruned"])
def test_a_model_is_exported_and_compared(which, quantization, store, small, capsys, tmp_path):
    model = store.run.path if which == "whole" else small
    folder = tmp_path / "out"
    assert main(["export", f"run={model}", f"quantization={quantization}", f"folder={folder}", "check=5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "5 test sentences" in lines[1]
    assert lines[-1] == f"Results: {folder}"
    if quantization == "float32":
        assert ": 0 differ" in lines[1]
    differ = ": 0 differ" not in lines[1]
    assert (folder / "differences.tsv").exists() == differ


def test_it_goes_beside_its_weights_and_is_never_overwritten(store, capsys):
    assert main(["export", f"run={store.run.run_id}", f"outputs={store.outputs}", "check=0"]) == 0
    folder = store.run.path / "exports" / "ctranslate2-float32"
    assert capsys.readouterr().out.splitlines()[-1] == f"Results: {folder}"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["export", f"run={store.run.run_id}", f"outputs={store.outputs}", "check=0"]) == 2
    assert "exists" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["run=nothing"], ["run=nothing", "no such run"]),
        ([], ["run: missing"]),
        (["run=RUN", "format=onnx"], ["format=onnx", "ctranslate2"]),
        (["run=RUN", "quantization=int4"], ["quantization=int4", "float32", "int8"]),
        (["run=RUN", "to=x"], ["to=x: no such key", "folder"]),
    ],
)
def test_what_export_cannot_do_is_said_in_one_line(words, parts, store, capsys):
    assert main(["export", *(word.replace("RUN", str(store.run.path)) for word in words)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err
