"""What `selfcheck resume` compares: all that a run decides, and none of the times that it took."""

import csv
import shutil

from ablab.files import write_json
from ablab.store.run_folder import RunFolder
from ablab.tracking.console import Console
from ablab.transformer.translation.verbs.selfcheck import _verdict


def copied(store, place):
    return RunFolder(shutil.copytree(store.outputs / "runs" / store.first, place / store.first))


def edited(folder, column, value):
    with folder.metrics.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row[column] = value if row[column] else ""
    with folder.metrics.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    record = folder.record().model_dump(mode="json")
    write_json(folder.path / "record.json", {**record, "metrics": "of other times"})
    return folder


def test_a_run_that_took_another_time_is_equal_and_one_of_another_loss_is_not(store, tmp_path, capsys):
    whole = copied(store, tmp_path / "whole")
    assert _verdict(whole, edited(copied(store, tmp_path / "later"), "seconds", 7.5), Console()) == 0
    assert "DIFFER" not in capsys.readouterr().out
    assert _verdict(whole, edited(copied(store, tmp_path / "other"), "loss", 7.5), Console()) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.endswith("DIFFER")]
    assert line.startswith("curves")
