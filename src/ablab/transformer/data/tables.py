"""Parallel text in one file, plain or `.gz`: `.tsv` with two columns, or `.jsonl` with two named fields.

Such a file is read as the pairs of lines that it stands for, so that equal text gives equal runs in every format.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.files import one_line
from ablab.transformer.data.corpus import Pair, digest_of
from ablab.transformer.data.kept import kept
from ablab.transformer.data.keys import readable
from ablab.transformer.data.text_files import checked_spoken, stream_lines

TSV, JSONL = (".tsv", ".tsv.gz"), (".jsonl", ".jsonl.gz")
NESTED = "translation"
"""The field in which many published corpora hold a sentence of each language."""


def is_table(path: str) -> bool:
    """Return whether a path names one file with both sides, by its ending."""
    return path.endswith((*TSV, *JSONL))


@dataclass(frozen=True)
class Table:
    """One file with both sides. `columns`: names of the JSON fields of source and target."""

    path: Path
    columns: tuple[str, str]

    @property
    def paths(self) -> list[Path]:
        return [self.path]

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
        """Return all pairs in order; as `stream`."""
        return list(self.stream())

    def stream(self) -> Iterator[Pair]:
        """Yield all pairs in order; UserError with the number of the first line that holds none."""
        return checked_spoken(self._split(), str(self.path))

    def _split(self) -> Iterator[Pair]:
        split = _cells if self.path.name.endswith(TSV) else _fields
        number = 0
        for number, line in enumerate(stream_lines(self.path), 1):
            try:
                source, target = split(line, self.columns)
            except ValueError as error:
                raise UserError(f"{self.path}: line {number}: {error}") from None
            yield readable(one_line(source)), readable(one_line(target))
        if not number:
            raise UserError(f"{self.path} is empty.")

    def _known(self) -> tuple[str, int]:
        digest, count = kept([self.path], ("sentences", *self.columns), self._read)
        return digest, count

    def _read(self) -> tuple[str, int]:
        digests, count = (hashlib.sha256(), hashlib.sha256()), 0
        for pair in self.stream():
            for digest, side in zip(digests, pair, strict=True):
                digest.update(f"{side}\n".encode())
            count += 1
        return digest_of([digest.hexdigest() for digest in digests]), count


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
        try:
            inside[name].encode()
        except UnicodeEncodeError:
            raise ValueError(f"half a surrogate pair in the field {name}; allowed: whole characters") from None
        yield inside[name]
