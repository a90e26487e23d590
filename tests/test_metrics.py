"""Curves on disk: as they come, whole rows, and after a resume what an undisturbed run would have written."""

import csv
import os
from pathlib import Path

import pytest

from ablab.store.metrics import MetricsFile, read_metrics
from ablab.transformer.stages.callbacks import columns_of
from ablab.transformer.translation.validation import TranslationValidation

COLUMNS = columns_of(TranslationValidation)


def _write(path: Path, steps: list[int], from_step: int = 0) -> None:
    metrics = MetricsFile(path, COLUMNS, from_step)
    for step in steps:
        metrics.write({"step": step, "loss": step / 7, "seconds": float(step)})
    metrics.close()


def _steps(path: Path) -> list[float]:
    return [row["step"] for row in read_metrics(path)]


def test_a_resume_takes_back_what_lies_beyond_the_checkpoint(tmp_path):
    straight, stopped = tmp_path / "a.csv", tmp_path / "b.csv"
    _write(straight, [10, 20, 30, 40])
    _write(stopped, [10, 20, 30])
    _write(stopped, [30, 40], from_step=20)
    assert stopped.read_text() == straight.read_text()


def test_a_start_from_nothing_begins_anew(tmp_path):
    _write(tmp_path / "a.csv", [10, 20])
    _write(tmp_path / "a.csv", [10])
    assert _steps(tmp_path / "a.csv") == [10]


@pytest.mark.parametrize("cut", [1, 2, 3, 6, 9])
def test_a_row_cut_off_by_a_crash_is_dropped(cut, tmp_path):
    path = tmp_path / "a.csv"
    _write(path, [10, 20])
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    _write(path, [30], from_step=20)
    assert _steps(path) == [10, 30]


@pytest.mark.parametrize("wrong", [b"\xff", b"x", b"\0", b"nan", b",", b'"'])
def test_a_damaged_row_is_dropped_and_the_others_stay(wrong, tmp_path):
    path = tmp_path / "a.csv"
    _write(path, [10, 20, 30])
    path.write_bytes(path.read_bytes().replace(b"2.85714", b"2.8" + wrong + b"5714"))
    metrics = MetricsFile(path, COLUMNS, from_step=30)
    metrics.write({"step": 40})
    metrics.close()
    assert metrics.lost == 1
    assert _steps(path) == [10, 30, 40]


def test_a_kill_while_rows_are_taken_back_loses_none(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    _write(path, [10, 20, 30])
    before = path.read_bytes()
    monkeypatch.setattr(csv.DictWriter, "writerows", lambda *_: os._exit(9))
    child = os.fork()
    if child == 0:
        MetricsFile(path, COLUMNS, 20)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["gone", "empty", "a row of validation"])
def test_validations_that_are_lost_are_written_again(damage, tmp_path):
    path, validated = tmp_path / "a.csv", [{"step": step, "valid_loss": step / 3} for step in (10, 20)]
    metrics = MetricsFile(path, COLUMNS, 0)
    for row in validated:
        metrics.write({"step": row["step"], "loss": 1.5})
        metrics.write(row)
    metrics.close()
    whole = MetricsFile(path, COLUMNS, 20, validated)
    whole.close()
    before = read_metrics(path)
    assert whole.lost == 0
    lines = path.read_text().splitlines(keepends=True)
    path.write_text({"gone": "", "empty": "", "a row of validation": "".join(lines[:2] + lines[3:])}[damage])
    if damage == "gone":
        path.unlink()
    found = MetricsFile(path, COLUMNS, 20, validated)
    found.close()
    assert found.lost == (1 if damage.startswith("a row") else 2)
    there = read_metrics(path)
    assert there == (before if damage.startswith("a row") else [row for row in before if "valid_loss" in row])


def test_rows_are_on_disk_as_they_come_and_empty_cells_stay_away(tmp_path):
    metrics = MetricsFile(tmp_path / "a.csv", COLUMNS, 0)
    metrics.write({"step": 5, "valid_bleu": 12.5})
    assert read_metrics(tmp_path / "a.csv") == [{"step": 5, "valid_bleu": 12.5}]
    metrics.close()
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == ",".join(COLUMNS)


def test_a_column_nobody_knows_is_refused(tmp_path):
    metrics = MetricsFile(tmp_path / "a.csv", COLUMNS, 0)
    with pytest.raises(ValueError, match="surprise"):
        metrics.write({"step": 5, "surprise": 1})
    metrics.close()
