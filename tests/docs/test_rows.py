"""The rows behind a published report hold, are those that it judged, and show no sentence."""

import json
import zipfile
from pathlib import Path

import pytest

from ablab.api.store import open as open_store
from ablab.commands.cli import main
from ablab.errors import UserError
from benchmarks.publish import judged

RESULTS = Path(__file__).parents[2] / "docs" / "results"
PACKED = sorted(RESULTS.glob("*/rows.zip"))


@pytest.mark.parametrize("rows", PACKED, ids=lambda path: path.parent.name)
def test_shipped_rows_are_those_of_the_report(rows, capsys):
    assert main(["verify", f"archive={rows}"]) == 0, capsys.readouterr().out
    report = json.loads((rows.parent / "report.json").read_text(encoding="utf-8"))
    with zipfile.ZipFile(rows) as archive:
        index = json.loads(archive.read("pack.json"))
    assert not index["text"]
    judged = {run["run_id"] for arm in report["arms"] for run in arm["runs"] if run["score"] is not None}
    assert judged <= set(index["runs"])
    assert judged


def test_some_are_shipped():
    assert PACKED


@pytest.mark.slow
@pytest.mark.parametrize("rows", PACKED, ids=lambda path: path.parent.name)
def test_a_published_report_is_what_its_rows_say_today(rows, tmp_path):
    ours = json.loads((judged(rows, tmp_path) / "report.json").read_text(encoding="utf-8"))
    theirs = json.loads((rows.parent / "report.json").read_text(encoding="utf-8"))
    assert ours["made"] == theirs["made"], "make results judges them again"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The smallest of them, unpacked as a store."""
    rows = min(PACKED, key=lambda path: path.stat().st_size)
    store = tmp_path_factory.mktemp("store")
    with zipfile.ZipFile(rows) as archive:
        archive.extractall(store)
    return rows.parent.name, store


def test_what_was_not_packed_is_not_said_to_be_gone(unpacked, capsys):
    name, store = unpacked
    assert main(["verify", f"experiment={name}", f"outputs={store}"]) == 0
    said = capsys.readouterr().out
    assert "There are no translations to score again: they were not packed" in said
    assert "differ" not in said
    run = open_store(store).runs()[0]
    assert main(["show", f"run={run.id}", f"outputs={store}"]) == 0
    assert "every digest is the one on record" in capsys.readouterr().out
    with pytest.raises(UserError, match="its translations were not packed"):
        run.hypotheses()


def test_an_archive_of_what_has_no_texts_promises_none_and_holds(unpacked, tmp_path, capsys):
    name, store = unpacked
    assert main(["pack", f"experiment={name}", f"outputs={store}", f"to={tmp_path}/again.zip"]) == 0
    assert "It holds no text: these runs are of an archive without" in capsys.readouterr().out
    assert main(["verify", f"archive={tmp_path}/again.zip"]) == 0


def test_a_file_that_was_packed_is_missed_where_it_is_gone(unpacked, capsys):
    name, store = unpacked
    metrics = next(store.glob("runs/*/metrics.csv"))
    content = metrics.read_bytes()
    metrics.unlink()
    assert main(["verify", f"experiment={name}", f"outputs={store}"]) == 1
    assert f"runs/{metrics.parent.name}/metrics.csv is gone" in capsys.readouterr().out
    metrics.write_bytes(content)
