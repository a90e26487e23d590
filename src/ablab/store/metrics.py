"""metrics.csv: the training curves of a run, one row per measurement or validation, appended during training."""

import csv
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.files import replacing

COLUMNS = (
    "step",
    "seconds",
    "loss",
    "learning_rate",
    "grad_norm",
    "drophead",
    "tokens_per_second",
    "padding",
    "valid_loss",
    "valid_perplexity",
    "valid_bleu",
)


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


class MetricsFile:
    """Writes rows of metrics.csv as they come. After a resume, rows from after the checkpoint are removed first.

    Until the file without them is whole, the earlier one stays, so that a kill loses no row of training.
    """

    def __init__(self, path: Path, from_step: int) -> None:
        kept = [row for row in _readable(path) if int(row["step"]) <= from_step] if from_step else []
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(kept)
        self._file = path.open("a", encoding="utf-8", newline="")
        self._writer = csv.DictWriter(self._file, COLUMNS)

    def write(self, row: dict[str, Any]) -> None:
        """Write one row; missing cells stay empty."""
        self._writer.writerow(
            {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
        )
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _readable(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows that can be read; a damaged one must not keep a run from going on."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        # A crash may cut off the last row, and a cut number may read as a smaller one.
        whole = [line for line in file if line.endswith("\n") and "\0" not in line]
    for row in csv.DictReader(whole):
        known = set(row) <= set(COLUMNS) and (row["step"] or "").isdigit() if "step" in row else False
        if known and all(map(_is_number, filter(None, row.values()))):
            yield row


def _is_number(cell: str) -> bool:
    try:
        return isfinite(float(cell))
    except ValueError:
        return False
