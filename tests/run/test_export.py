"""`ablab export`: a model for CTranslate2, whole or pruned, compared with ours on the test set."""

import io
import sys

import pytest

from ablab.commands.cli import main

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


def test_either_backend_translates_alike_and_an_export_is_made_once(small, capsys, monkeypatch):
    text = "twelve\n\none hundred and five\nninety-nine\n"

    def translated(backend: str) -> tuple[list[str], str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["translate", f"run={small}", f"backend={backend}", "beam_size=2"]) == 0
        out, err = capsys.readouterr()
        return out.split("\n"), err

    ours, _ = translated("ablab")
    theirs, said = translated("ctranslate2")
    assert f"is exported to {small / 'exports' / 'ctranslate2-float32'}" in said
    assert len(theirs) == len(ours) == 5
    assert theirs[1] == ""
    assert [theirs[i] for i in (0, 2, 3)] == [ours[i] for i in (0, 2, 3)]
    assert "exported" not in translated("ctranslate2")[1]


@pytest.mark.parametrize("word", ["attention=maps", "device=gpu"])
def test_what_only_our_own_search_can_do_is_said(word, small, capsys):
    assert main(["translate", f"run={small}", "backend=ctranslate2", word]) == 2
    assert capsys.readouterr().err == f"error: {word}: not with backend=ctranslate2; allowed: backend=ablab\n"


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
