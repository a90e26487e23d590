"""From a figure to the bytes it rests on: each link that is broken is found, and an archive needs no store."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.commands.verification import verify_runs
from ablab.errors import UserError
from ablab.files import read_lines
from ablab.judge.custody import links
from ablab.store.chain import Chain
from ablab.store.finished import FinishedRun
from ablab.store.records import Stretch
from ablab.store.register import file_digest
from ablab.store.run_folder import RunFolder
from ablab.tasks.plan import reopened
from ablab.tracking.console import Console
from tests.made_once import made_once
from tests.run.conftest import TINY, typed

LINE = ("smoke=true", *TINY, "logger=none", "training.max_steps=6", "training.valid_every=3", "decoding.n_best=2")


def _made(folder: Path) -> str:
    assert typed(*LINE, f"outputs={folder}").code == 0
    (run,) = [path.name for path in (folder / "smoke" / "runs").iterdir() if path.is_dir()]
    return run


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return made_once("custody", _made, tmp_path_factory)


@pytest.fixture
def run(original, tmp_path) -> RunFolder:
    """A run of every kind of file, in a store of its own."""
    folder, name = original
    return RunFolder(shutil.copytree(folder / "smoke", tmp_path / "store") / "runs" / name)


def said_of(capsys, *words: str) -> tuple[int, str]:
    code = main(["verify", *words])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_each_file_of_a_whole_run_is_a_link_that_holds(run, capsys):
    found = list(links(run, Chain.of(run.outputs)))
    assert [link for link in found if link.fault is not None] == []
    linked = {link.file for link in found}
    there = {path.relative_to(run.outputs).as_posix() for path in run.outputs.rglob("*") if path.is_file()}
    of_no_figure = (".lock", "validated_layers.json", "spent.json", "sources.txt", "manifest.json", "register.jsonl")
    unlinked = {file for file in there - linked if not file.endswith(of_no_figure) and "/artefacts/" not in file}
    assert unlinked == set()
    code, out = said_of(capsys, f"run={run.path}")
    assert (code, "none is broken" in out, "All that was checked holds" in out) == (0, True, True)


def test_a_run_is_not_pruned_on_another_text(run):
    """Its tokenizers would not fit, and the layers be chosen by what they make of that."""
    finished = FinishedRun(run, run.record())
    assert reopened(finished, []).run_id == run.run_id
    recipe = run.path / "recipe.yaml"
    digest = run.recipe()["data"]["digest"]
    recipe.write_text(recipe.read_text().replace(digest, "0" * len(digest)))
    with pytest.raises(UserError, match="is not what it was trained on"):
        reopened(finished, [])


def test_a_register_that_is_gone_is_a_broken_link(run, capsys):
    (run.outputs / "register.jsonl").unlink()
    code, out = said_of(capsys, f"run={run.path}")
    assert (code, "register.jsonl is gone" in " ".join(out.split())) == (1, True), out


PLACES = {
    "record": ("runs/*/record.json", "is not what was entered in the register"),
    "recipe": ("runs/*/recipe.yaml", "is not the recipe of"),
    "evaluation": ("runs/*/evaluations/*.json", "is not what was entered in the register"),
    "translations": ("runs/*/evaluations/*.txt", "is not what was translated"),
    "n best": ("runs/*/evaluations/*.n_best.tsv", "is not what was translated"),
    "curve": ("runs/*/curves/*.json", "is not what was entered in the register"),
    "metrics": ("runs/*/metrics.csv", "is not what was measured in training"),
    "definitions": ("code/*.json", "is not the code that it was trained with"),
    "weights": ("runs/*/checkpoints/selected.safetensors", "is not what was selected"),
    "tokenizer": ("runs/*/checkpoints/src.model", "is not what was trained with"),
    "state": ("runs/*/checkpoints/last.pt", "is not what was left by training"),
    "corpus": ("corpora/*/train.src.*", "is not what was trained on"),
    "references": ("corpora/*/references.txt", "is not the text that was translated"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_changed_byte_is_found_and_its_file_named(place, run, capsys):
    pattern, fault = PLACES[place]
    path = sorted(run.outputs.glob(pattern))[0]
    content = path.read_bytes()
    if place == "recipe":
        changed = content.replace(b"seed: 1", b"seed: 7")
    elif path.suffix == ".json":
        changed = content + b" "
    else:
        changed = content[:-1] + bytes([content[-1] ^ 1])
    assert changed != content
    path.write_bytes(changed)
    code, out = said_of(capsys, f"run={run.path}")
    assert code != 0
    named = path.relative_to(run.outputs).as_posix()
    assert named in out
    assert fault in out


@pytest.mark.parametrize("place", [place for place in PLACES if place not in ("record", "recipe")])
def test_a_file_that_is_gone_is_found(place, run, capsys):
    pattern, _ = PLACES[place]
    path = sorted(run.outputs.glob(pattern))[0]
    path.unlink()
    faults = [link for link in links(run, Chain.of(run.outputs)) if link.fault is not None]
    assert any(link.file == path.relative_to(run.outputs).as_posix() for link in faults)


def test_a_stretch_that_began_from_another_checkpoint_is_found(run):
    record = run.record()
    (stretch,) = record.stretches
    later = stretch.model_copy(update={"first_step": 4, "began_from": "0" * 64})
    broken = record.model_copy(update={"stretches": [stretch.model_copy(update={"left": "1" * 64}), later]})
    (run.path / "record.json").write_text(broken.model_dump_json())
    faults = [link.fault for link in links(run, Chain.of(run.outputs)) if link.fault is not None]
    assert "its stretch 2 began from another checkpoint than stretch 1 left" in faults


def test_a_stretch_without_digests_is_none_that_is_broken():
    values = {"code": "x", "versions": {}, "threads": 1, "device": "cpu", "devices": 1, "micro_batches": 1}
    assert Stretch(**values, compile=False, first_step=1, last_step=2).left is None


@pytest.fixture
def archive(run, tmp_path, monkeypatch) -> Path:
    path = tmp_path / "a.zip"
    assert main(["pack", f"runs={run.path}", f"outputs={run.outputs}", f"to={path}"]) == 0
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(run.outputs)  # no store is needed
    return path


def test_an_archive_is_verified_without_its_store(archive, capsys):
    capsys.readouterr()
    code, out = said_of(capsys, f"archive={archive}")
    assert (code, "All that was checked holds" in out) == (0, True)
    assert "its lines follow each other" in out


def test_a_run_is_packed_by_its_path_also_from_a_folder_beside(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["report", f"runs={run.path.relative_to(tmp_path)}", "outputs=store", "resamples=1000"]) == 0
    assert main(["pack", f"runs=store/runs/{run.run_id}", "outputs=store", "to=a.zip"]) == 0
    assert any(name.startswith("reports/") for name in zipfile.ZipFile("a.zip").namelist())
    capsys.readouterr()
    code, out = said_of(capsys, "archive=a.zip")
    assert (code, "The report in it is not verified" in " ".join(out.split())) == (0, True)
    shutil.copytree(run.outputs, tmp_path / "other")
    code = main(["pack", f"runs=store/runs/{run.run_id},other/runs/{run.run_id}", "outputs=store", "to=b.zip"])
    assert code == 2
    assert "allowed: an archive of what is in one store" in capsys.readouterr().err


def test_a_line_of_the_register_that_fits_an_edited_record_breaks_the_chain(run, capsys):
    """As of a forger who enters the digest of what was edited."""
    record = run.path / "record.json"
    before = file_digest(record)
    record.write_text(record.read_text().replace('"reason": "', '"reason": "not '))
    register = run.outputs / "register.jsonl"
    register.write_text(register.read_text().replace(before, file_digest(record)))
    code, out = said_of(capsys, f"run={run.path}")
    assert (code, "the register is broken" in " ".join(out.split())) == (1, True)


def test_an_evaluation_that_cannot_be_read_is_a_broken_link_and_no_end(run):
    pruned = run.curves()[0].points[-1].evaluation_id
    (run.path / "evaluations" / f"{pruned}.json").write_text("{")
    (found,) = verify_runs([FinishedRun(run, run.record())], Console(bars=False))
    assert f"{pruned}.json" in found.broken
    assert len(found.mismatches) == 1


def test_an_archive_has_the_definitions_that_its_records_name_and_misses_them(archive, capsys):
    (name,) = [name for name in zipfile.ZipFile(archive).namelist() if name.startswith("code/")]
    _again(archive, lambda files: _reindexed(files, name, files[name].replace(b"derive", b"differ")))
    assert f"{name} is not the code that it was trained with" in " ".join(
        said_of(capsys, f"archive={archive}")[1].split()
    )
    _again(archive, lambda files: _left_out(files, name))
    code, out = said_of(capsys, f"archive={archive}")
    assert (code, f"{name} is gone" in " ".join(out.split())) == (1, True)


def test_an_archive_with_weights_has_them_verified(run, tmp_path, capsys):
    path = tmp_path / "w.zip"
    words = (f"runs={run.path}", f"outputs={run.outputs}", f"to={path}")
    assert main(["pack", *words, "weights=true"]) == 0
    assert any(name.endswith("selected.safetensors") for name in zipfile.ZipFile(path).namelist())
    assert said_of(capsys, f"archive={path}")[0] == 0


def test_an_archive_of_a_store_that_lacks_runs_says_so(run, tmp_path, capsys):
    words = (f"runs={run.path}", f"outputs={run.outputs}", f"to={tmp_path / 'lacking.zip'}")
    with open(run.outputs / "register.jsonl", "a") as register:
        register.write("no line of a register\n")
    assert main(["pack", *words]) == 0
    out = capsys.readouterr().out
    assert "The store lacks what it should have (1 fault above), and so does this" in out
    assert f"ablab verify archive={tmp_path / 'lacking.zip'}" in out


def test_an_archive_without_text_shows_no_sentence_and_has_the_rest_verified(run, tmp_path, capsys):
    lines = {line for path in run.outputs.glob("corpora/*/*.txt") for line in read_lines(path)}
    lines |= {line for path in run.path.glob("evaluations/*.txt") for line in read_lines(path)}
    sentences = [line.encode() for line in lines if len(line.split()) > 3]
    assert sentences
    words, path = (f"runs={run.path}", f"outputs={run.outputs}"), tmp_path / "n.zip"
    assert main(["pack", *words, f"to={path}", "text=false"]) == 0
    with zipfile.ZipFile(path) as packed:
        assert not [name for name in packed.namelist() if any(line in packed.read(name) for line in sentences)]
        assert not [
            name for name in packed.namelist() if name.endswith((".txt", ".tsv"))
        ]  # the model has learnt few words yet
    shutil.rmtree(run.outputs)
    code, out = said_of(capsys, f"archive={path}")
    assert (code, "All that was checked holds" in out, "no translations to score again" in out) == (0, True, True)
    _again(path, lambda files: _reindexed(files, f"runs/{run.run_id}/metrics.csv", b"step\n"))
    assert "is not what was measured in training" in said_of(capsys, f"archive={path}")[1]


def _again(archive: Path, change) -> None:
    """Pack the files anew after `change`, which gets them by their names, with an index that fits what it says."""
    with zipfile.ZipFile(archive) as old:
        files = {name: old.read(name) for name in old.namelist()}
    change(files)
    with zipfile.ZipFile(archive, "w") as new:
        for name, content in files.items():
            new.writestr(name, content)


def _reindexed(files, name, content):
    """As a forger who makes the index fit."""
    import hashlib

    index = json.loads(files["pack.json"])
    files[name] = content
    index["files"][name] = hashlib.sha256(content).hexdigest()
    files["pack.json"] = json.dumps(index).encode()


def _left_out(files, name):
    index = json.loads(files["pack.json"])
    del files[name], index["files"][name]
    files["pack.json"] = json.dumps(index).encode()


def _edited(files):
    name = next(name for name in files if name.endswith("record.json"))
    files[name] += b" "


def _forged(files):
    name = next(name for name in files if name.endswith(".txt") and "/evaluations/" in name)
    _reindexed(files, name, files[name] + b"more\n")


def _cut(files):
    _reindexed(files, "register.jsonl", b"".join(files["register.jsonl"].splitlines(keepends=True)[:-1]))


def _outside(files):
    _reindexed(files, "../outside.txt", b"x")


def _more(files):
    files["more.txt"] = b"x"


FORGED = {
    "a file edited": (_edited, "is not what was packed"),
    "its digest too": (_forged, "is not what was translated"),
    "the register cut": (_cut, "its end is not the one that was packed"),
    "a file outside": (_outside, "would lie outside of it"),
    "one file more": (_more, "more.txt is not in its index"),
    "one file less": (lambda files: files.pop("register.jsonl"), "register.jsonl is missing"),
    "no index": (lambda files: files.pop("pack.json"), "not an archive of ablab pack"),
    "another index": (lambda files: files.update({"pack.json": b"{}"}), "not an archive of ablab pack"),
}


@pytest.mark.parametrize("how", FORGED)
def test_an_archive_that_was_changed_does_not_hold(how, archive, capsys):
    change, words = FORGED[how]
    _again(archive, change)
    capsys.readouterr()
    code, out = said_of(capsys, f"archive={archive}")
    assert code != 0
    assert words in out, out
    assert not (archive.parent / "outside.txt").exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("table=a.csv",), "allowed: `report table=`, which judges them"),
        ((), "verify: say one of run=<id>"),
        (("run=a", "archive=b"), "verify: say one of run=<id>"),
        (("archive=nowhere.zip",), "archive=nowhere.zip: no such file"),
    ],
)
def test_a_line_that_names_nothing_is_refused(words, line, tmp_path, capsys):
    code, out = said_of(capsys, *words, f"outputs={tmp_path}")
    assert code == 2
    assert line in out
