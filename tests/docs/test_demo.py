"""The study that is shipped: a verdict in seconds, from the archive as it was packed."""

import json
from pathlib import Path

import pytest

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
