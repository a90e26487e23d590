"""Parallel text in one file, plain or `.gz`: `.tsv` with two columns, or `.jsonl` with two named fields.

Such a file is read as the pairs of lines that it stands for, so that equal text gives equal runs in every format.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablab.data.corpus import Pair, digest_of
from ablab.data.text_files import check_spoken, read_lines
from ablab.errors import UserError
from ablab.lines import one_line, text_of

TSV, JSONL = (".tsv", ".tsv.gz"), (".jsonl", ".jsonl.gz")
NESTED = "translation"
"""The field in which many published corpora hold a sentence of each language."""

_facts: dict[tuple[Path, int, int, tuple[str, ...]], tuple[str, int]] = {}
"""Digests and numbers of pairs computed in this process, by file, its size and time, and columns."""


def is_table(path: str) -> bool:
    """Return whether a path names one file with both sides, by its ending."""
    return path.endswith((*TSV, *JSONL))


@dataclass(frozen=True)
class Table:
    """One file with both sides. `columns`: names of the JSON fields of source and target."""

    path: Path
    columns: tuple[str, str]

    def check(self) -> None:
        """Raise UserError unless the file exists."""
        if not self.path.is_file():
            raise UserError(f"no file {self.path}")

    def digest(self) -> str:
        """Return the hex SHA-256 of the text, equal to that of two parallel files with the same lines."""
        return self._known()[0]

    def count(self) -> int:
        return self._known()[1]

    def pairs(self) -> list[Pair]:
        """Return all pairs in order; UserError with the number of the first line that holds none."""
        lines = read_lines(self.path)
        if not lines:
            raise UserError(f"{self.path} is empty.")
        split = _cells if self.path.name.endswith(TSV) else _fields
        pairs = []
        for number, line in enumerate(lines, 1):
            try:
                source, target = split(line, self.columns)
            except ValueError as error:
                raise UserError(f"{self.path}: line {number}: {error}") from None
            pairs.append((one_line(source), one_line(target)))
        check_spoken(pairs, str(self.path))
        return pairs

    def _known(self) -> tuple[str, int]:
        stat = self.path.stat()
        key = (self.path.resolve(), stat.st_size, stat.st_mtime_ns, self.columns)
        if key not in _facts:
            pairs = self.pairs()
            sides = (text_of(pair[side] for pair in pairs).encode() for side in (0, 1))
            _facts[key] = digest_of([hashlib.sha256(side).hexdigest() for side in sides]), len(pairs)
        return _facts[key]


def _cells(line: str, _: Sequence[str]) -> list[str]:
    cells = line.split("\t")
    if len(cells) != 2:
        raise ValueError(f"{len(cells)} columns; allowed: 2, source and target, separated by a tab")
    return cells


def _fields(line: str, columns: Sequence[str]) -> Iterator[str]:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("not readable as JSON; allowed: an object on every line") from None
    if not isinstance(record, dict):
        raise ValueError("no JSON object; allowed: an object on every line")
    nested = record.get(NESTED)
    inside = record if not isinstance(nested, dict) or columns[0] in record else nested
    for name in columns:
        if not isinstance(inside.get(name), str):
            having = ", ".join(str(key) for key, value in inside.items() if isinstance(value, str)) or "none"
            raise ValueError(
                f"no text in the field {name}; fields with text: {having}; allowed: data.columns=[two,names]"
            )
        yield inside[name]
