"""metrics.csv: the training curves of a run, one row per measurement or validation, appended during training."""

import csv
import os
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.files.disk import replacing


def read_metrics(path: Path) -> list[dict[str, float]]:
    """Return all rows without their empty cells.

    Raise UserError if a value is not a finite number or a row has no step.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [{key: float(value) for key, value in row.items() if value} for row in csv.DictReader(file)]
    except (ValueError, TypeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as metrics ({error})") from None
    if any("step" not in row or not all(map(isfinite, row.values())) for row in rows):
        raise UserError(f"{path}: cannot be read as metrics (every row has a step and finite numbers)")
    return rows


VALID = "valid_"
"""Prefix of the columns of validation."""


class MetricsFile:
    """Writes rows of metrics.csv as they come. After a resume, rows from after the checkpoint are removed first.

    Until the file without them is whole, the earlier one stays, so that a kill loses no row of training.

    `columns`: all that a row may have, `step` first. `validated`: rows of validations up to `from_step`, which the
    checkpoint knows: they are written again where the file lacks them. `lost`: how many rows were lacking or could not
    be read.
    """

    def __init__(
        self, path: Path, columns: Sequence[str], from_step: int, validated: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        readable, unreadable = _read(path, columns) if from_step else ([], 0)
        kept = [row for row in readable if int(row["step"]) <= from_step]
        there = {int(row["step"]) for row in kept if any(row.get(key) for key in columns if key.startswith(VALID))}
        lacking = [_formatted(row) for row in validated if row["step"] not in there]
        self.lost = len(lacking) + unreadable
        kept = sorted([*kept, *lacking], key=lambda row: int(row["step"]))
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(kept)
        self._file = path.open("a", encoding="utf-8", newline="")
        self._writer = csv.DictWriter(self._file, columns)

    def write(self, row: dict[str, Any]) -> None:
        """Write one row; missing cells stay empty."""
        self._writer.writerow(_formatted(row))
        self._file.flush()

    def sync(self) -> None:
        """Return once all rows so far are on disk: a resume from a checkpoint does not measure them again."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _formatted(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}


def _read(path: Path, columns: Sequence[str]) -> tuple[list[dict[str, str]], int]:
    """Return the rows that can be read, and how many cannot; a damaged one must not keep a run from going on."""
    if not path.exists():
        return [], 0
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        # A crash may cut off the last row, and a cut number may read as a smaller one.
        whole = [line for line in file if line.endswith("\n")]
    # No cell is quoted: a quote is damage, and would make one cell of all that follows.
    lines = csv.DictReader((line for line in whole if "\0" not in line), quoting=csv.QUOTE_NONE)
    rows = [row for row in lines if _is_known(row, columns)]
    return rows, max(len(whole) - 1, 0) - len(rows)


def _is_known(row: dict[str, str], columns: Sequence[str]) -> bool:
    named = set(row) <= set(columns) and (row["step"] or "").isdigit() if "step" in row else False
    return named and all(map(_is_number, filter(None, row.values())))


def _is_number(cell: str) -> bool:
    try:
        return isfinite(float(cell))
    except ValueError:
        return False
