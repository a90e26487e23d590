"""Rows of tables in several formats, each with the place that errors name, and rows of a run made rows of a score."""

import csv
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ablab.errors import UserError, choices, is_installed
from ablab.files import each_once

ITEM = "item"
"""The column of scores of single test items, which make up that of their run."""

CORPUS = "corpus"
"""The column that says what an arm was trained on."""

NO_ROWS = "has no rows; allowed: one for each run, or for each of its scores"


class Row(NamedTuple):
    """A row by the names of its columns. `where`: file and line, or the number of the row in a frame."""

    where: str
    values: Mapping[str, Any]


class Sheet(NamedTuple):
    """A table. `columns`: of all its rows, which an empty one has too."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Row]

    @classmethod
    def of(cls, name: str, rows: Sequence[Row]) -> "Sheet":
        """Make one of rows that need not have the same columns."""
        return cls(name, list(dict.fromkeys(column for row in rows for column in row.values)), rows)

    def words(self, scores: Collection[str]) -> list[dict[str, str]]:
        """Return what may tell the arms of each row apart: all but scores, items, and columns of broken numbers.

        These may be scores, too. A factor that they are is named as `arm`.
        """
        telling = [
            column
            for column in self.columns
            if column not in (*scores, ITEM, CORPUS)
            and not any(_is_broken(row.values.get(column)) for row in self.rows)
        ]
        return [{column: str(row.values.get(column)) for column in telling} for row in self.rows]


@dataclass(frozen=True)
class RunColumns:
    """The columns of a table with a row for each run: those that name its arm, its seed, and its scores."""

    arm: Sequence[str]
    seed: str
    metrics: Sequence[str]

    def by_score(self, sheet: Sheet) -> Sheet:
        """Return a table with a row for each score of each run. UserError for a column that is not there."""
        self.check(sheet)
        return Sheet.of(sheet.name, list(self._scores(sheet.rows)))

    def check(self, sheet: Sheet) -> None:
        """Raise UserError for a column that is not there."""
        for column in (*self.arm, self.seed, *self.metrics):
            if column not in sheet.columns:
                other = "; seed, in a file of claims or in Python, names another" if column == self.seed else ""
                raise UserError(f"{sheet.name}: has no column {column}; {choices(column, sheet.columns)}{other}")

    def _scores(self, rows: Sequence[Row]) -> Iterator[Row]:
        counts = {column for column in self.arm if any(type(row.values.get(column)) is int for row in rows)}
        named: dict[str, dict[str, Any]] = {}
        for where, values in rows:
            levels = {column: _level(values.get(column), column in counts) for column in self.arm}
            are_empty = not any(str(level).strip() for level in levels.values())
            for column, level in levels.items():
                if are_empty or is_missing(level):
                    raise UserError(f"{where}: {column} is missing, so that the run has no arm; allowed: a level")
            arm = ",".join(f"{column}={level}" for column, level in levels.items())
            if (other := named.setdefault(arm, levels)) != levels:
                raise UserError(
                    f"{where}: {levels} and {other} are both named {arm}; allowed: levels without such commas"
                )
            for metric in self.metrics:
                one = {"arm": arm, "seed": values.get(self.seed), "metric": metric, "value": values.get(metric)}
                beside = {name: values[name] for name in (ITEM, CORPUS) if name in values and name not in self.arm}
                yield Row(where, {**one, **beside})


def _level(value: Any, is_count: bool) -> Any:
    """Return a level as it is written: in JSON, 1 and 1.0 are one number. `is_count`: the column has whole numbers."""
    return int(value) if is_count and isinstance(value, float) and value.is_integer() else value


def _is_broken(value: Any) -> bool:
    try:
        number = float(value)
        return math.isfinite(number) and not number.is_integer()
    except (TypeError, ValueError, OverflowError):
        return False


def is_missing(value: Any) -> bool:
    """Return whether a frame has no value here: its libraries write None, NaN, NaT or NA."""
    return value is None or (not isinstance(value, str) and str(value) in ("nan", "NaT", "<NA>"))


def _check_columns(name: str, columns: Sequence[Any]) -> None:
    """Raise UserError for a column that comes twice: a row has one value of a name."""
    if twice := [column for number, column in enumerate(columns) if column in columns[:number]]:
        raise UserError(f"{name}: has two columns {twice[0]}; allowed: one of each name")


def read_sheet(path: Path) -> Sheet:
    """Read a table by the ending of its name: CSV, lines of JSON, or Parquet. UserError for what is no such table."""
    if not path.exists():
        raise UserError(f"table={path}: no such file")
    if path.is_dir() or path.suffix not in READERS:
        others = "what MLflow, TensorBoard and lm-evaluation-harness write"
        raise UserError(f"table={path}: no table that is known; allowed: {', '.join(READERS)}, and {others}")
    return READERS[path.suffix](path)


def _csv(path: Path) -> Sheet:
    """Read values between commas, or between semicolons or tabs, whichever the header has most of.

    Blanks around a value, such as after a comma, are no part of it.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            delimiter = max(",;\t", key=re.sub(r'"[^"]*"', "", header).count)
            reader = csv.DictReader(file, strict=True, delimiter=delimiter)
            reader.fieldnames = columns = [column.strip() for column in reader.fieldnames or []]
            rows = [Row(f"{path}:{reader.line_num}", row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"table={path}: cannot be read as CSV ({error})") from None
    _check_columns(str(path), columns)
    for where, row in rows:
        if None in row or None in row.values():
            raise UserError(
                f"{where}: has more or fewer values than there are columns, which {delimiter!r} separates; a name with "
                "that in it needs quotes"
            )
    return Sheet(str(path), columns, [Row(where, {key: row[key].strip() for key in columns}) for where, row in rows])


def _json_lines(path: Path) -> Sheet:
    rows, number = [], 1
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
            if line.strip():
                rows.append(Row(f"{path}:{number}", json.loads(line, object_pairs_hook=each_once)))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}:{number}: cannot be read as a line of JSON ({error})") from None
    for where, values in rows:
        if not isinstance(values, dict):
            raise UserError(f'{where}: no object; allowed: lines such as {{"arm": "a", "seed": 1}}')
    return Sheet.of(str(path), rows)


def _parquet(path: Path) -> Sheet:
    """Read Parquet by whichever library is there."""
    try:
        if is_installed("pyarrow"):
            import pyarrow.parquet as parquet  # type: ignore[import-not-found, unused-ignore]

            return sheet_of_frame(parquet.read_table(path).to_pylist(), str(path))
        if is_installed("polars"):
            import polars  # type: ignore[import-not-found, unused-ignore]

            return sheet_of_frame(polars.read_parquet(path), str(path))
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"table={path}: cannot be read as Parquet ({' '.join(str(error).split())})") from None
    raise UserError(f"table={path}: Parquet needs a library: pip install pyarrow, or polars")


READERS = {".csv": _csv, ".tsv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines, ".parquet": _parquet}
"""By the ending of the name."""


def sheet_of_frame(frame: Any, name: str = "frame") -> Sheet:
    """Return the table of a pandas or polars frame, or of a sequence of mappings; UserError for anything else.

    What a frame of pandas names in its index is a column, too, as after `groupby`.
    """
    indices = [each for each in getattr(getattr(frame, "index", None), "names", []) if each is not None]
    _check_columns(name, [*indices, *getattr(frame, "columns", [])])
    if indices:
        frame = frame.reset_index()
    if hasattr(frame, "to_dicts"):
        found = frame.to_dicts()
    elif hasattr(frame, "to_dict") and hasattr(frame, "columns"):
        found = frame.to_dict("records")
    else:
        found = frame
    if not isinstance(found, Sequence) or not all(isinstance(row, Mapping) for row in found):
        raise UserError(f"{name}: {type(frame).__name__}; allowed: a frame of pandas or polars, or a list of dicts")
    if not found:
        raise UserError(f"{name}: {NO_ROWS}")
    named = [{str(column): value for column, value in row.items()} for row in found]  # pandas numbers unnamed ones
    return Sheet.of(name, [Row(f"{name}, row {number}", row) for number, row in enumerate(named)])
