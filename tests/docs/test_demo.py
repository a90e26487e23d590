"""The study that is shipped: a verdict in seconds, from the archive as it was packed."""

import json
import os
import zipfile
from pathlib import Path

import pytest

import ablab
from ablab.code.folders import shipped_experiments
from ablab.commands.cli import main
from ablab.commands.demo import ARCHIVE


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_it_ends_in_a_verdict_on_runs_that_hold(capsys):
    assert main(["demo"]) == 0
    said = capsys.readouterr().out
    assert "1 supported." in said
    assert "Nothing was trained" in said
    assert Path("ablab_demo/reports/digits/report.html").stat().st_size > 10_000
    lines = [line.strip() for line in said.splitlines() if line.strip().startswith(("ablab ls", "ablab verify"))]
    assert len(lines) == 2
    for line in lines:
        assert main(line.split()[1:]) == 0, line
    assert "the scores are those that the programs gave" in capsys.readouterr().out, "a forest translates nothing"


@pytest.mark.parametrize("name", ["digits", "experiments/digits.yaml"])
def test_a_file_of_its_name_is_another_study(name, capsys):
    """Also the very study under another Python, whose runs have other ids."""
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("question: x\nfactors: {norm: [pre, post]}\nseeds: [1, 2]\n")
    test_it_ends_in_a_verdict_on_runs_that_hold(capsys)


def test_python_opens_it_and_it_can_be_packed_again(capsys):
    assert main(["demo", "to=my demo"]) == 0
    store = ablab.open("my demo")
    (name,) = store.studies
    assert [claim.outcome for claim in store.study(name).claims] == ["supported"]
    capsys.readouterr()
    assert main(["pack", f"experiment={name}", "outputs=my demo", "to=again.zip"]) == 0
    assert main(["verify", "archive=again.zip"]) == 0


def test_a_second_time_it_reports_what_is_there(capsys):
    assert main(["demo", "to=mine"]) == 0
    before = json.loads(Path("mine/reports/digits/report.json").read_text())["claims"]
    assert main(["demo", "to=mine"]) == 0
    assert json.loads(Path("mine/reports/digits/report.json").read_text())["claims"] == before


def test_a_folder_of_something_else_stays_as_it_is(capsys):
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine")
    assert main(["demo", "to=mine"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in Path("mine").iterdir()] == ["notes.txt"]


def test_the_archive_is_small_and_holds():
    archive = shipped_experiments() / ARCHIVE
    assert archive.stat().st_size < 200_000
    assert main(["verify", f"archive={archive}"]) == 0


def test_a_run_taken_out_of_it_is_missed(tmp_path, capsys):
    with zipfile.ZipFile(shipped_experiments() / ARCHIVE) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    index = json.loads(files["pack.json"])
    gone = index["runs"].pop()
    files = {name: content for name, content in files.items() if not name.startswith(f"runs/{gone}/")}
    index["files"] = {name: digest for name, digest in index["files"].items() if name in files}
    with zipfile.ZipFile(tmp_path / "less.zip", "w") as archive:
        for name, content in {**files, "pack.json": json.dumps(index).encode()}.items():
            archive.writestr(name, content)
    assert main(["verify", f"archive={tmp_path / 'less.zip'}"]) == 1
    assert f"runs that had ended are gone: {gone}" in capsys.readouterr().out


def test_a_recipe_that_was_edited_takes_its_run_out(capsys):
    """Another seed in it would put the run where a registered one is missing."""
    assert main(["demo", "to=mine"]) == 0
    recipe = next(Path("mine/runs").glob("*/recipe.yaml"))
    recipe.write_text(recipe.read_text().replace("seed: ", "seed: 1"))
    assert main(["report", "experiment=digits", "outputs=mine"]) == 0
    said = capsys.readouterr().out
    assert f"is not the recipe of {recipe.parent.name}: it was edited" in said
    assert "1 provisional." in said
    assert main(["report", f"runs={recipe.parent.name}", "outputs=mine"]) == 2
    assert "it was edited" in capsys.readouterr().err


def test_a_store_that_cannot_be_written_in_is_shown_and_verified(capsys, monkeypatch):
    assert main(["demo", "to=mine"]) == 0
    monkeypatch.setattr(os, "access", lambda *_: False)
    capsys.readouterr()
    assert main(["verify", "experiment=digits", "outputs=mine"]) == 0
    assert main(["ls", "outputs=mine"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["report", "experiment=digits", "outputs=mine"]) == 2
    assert capsys.readouterr().err == "error: outputs=mine: no permission to write in mine\n"
