"""The rows behind a published report hold, are those that it judged, and show no sentence."""

import json
import zipfile
from pathlib import Path

import pytest

from ablab.commands.cli import main

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
