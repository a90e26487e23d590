"""Parallel text, plain or `.gz`: two files `<prefix>.<lang>`, or one of two columns, `.tsv`, or two fields, `.jsonl`.

Line n of one file translates line n of the other; a file with both sides is read as the pairs of lines that it stands
for. The digest of a file is of its sentences, so that equal text gives the same run whatever the format, the
compression and the line ends.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, cast

from ablab.errors import UserError
from ablab.files import canonical, one_line
from ablab.transformer.data.corpus import Pair, digest_of
from ablab.transformer.data.kept import kept
from ablab.transformer.data.keys import has_both_sides, readable

CHUNK = 1 << 20

TSV, JSONL = (".tsv", ".tsv.gz"), (".jsonl", ".jsonl.gz")

NESTED = "translation"
"""The field in which many published corpora hold a sentence of each language."""


def locate(prefix: str | Path, lang: str) -> Path:
    """Return the file `<prefix>.<lang>`, or else `<prefix>.<lang>.gz`; `~` is the home folder.

    Raises UserError if neither exists or one is no file: a pipe cannot be read twice, and a device may never end.
    """
    plain = Path(f"{Path(prefix).expanduser()}.{lang}")
    packed = plain.with_name(f"{plain.name}.gz")
    for path in (plain, packed):
        if path.is_dir():
            raise UserError(f"{path} is a folder, expected a file with one sentence per line.")
        if path.is_file():
            return path
        if path.exists():
            raise UserError(f"{path} is a pipe or a device, expected a file with one sentence per line.")
    raise UserError(f"no file {plain} or {packed.name}{_nearest(plain)}.")


def digest_of_pair(src: Path, tgt: Path) -> str:
    """Return the hex SHA-256 of the text of two parallel files, whatever their paths."""
    return digest_of([content_digest(src), content_digest(tgt)])


def content_digest(path: Path) -> str:
    """Return the hex SHA-256 of a file's lines, each ended by `\n`; `sha256sum` agrees for most unpacked files."""
    return _content(path)[0]


def count_pairs(src: Path, tgt: Path) -> int:
    """Return the number of pairs in two parallel files, including those with an empty side; UserError if unequal."""
    sources, targets = _content(src)[1], _content(tgt)[1]
    _check_aligned(src, sources, tgt, targets)
    return sources


def _check_aligned(src: Path, sources: int, tgt: Path, targets: int) -> None:
    for path, lines in ((src, sources), (tgt, targets)):
        if not lines:
            raise UserError(f"{path} is empty.")
    if sources != targets:
        raise UserError(
            f"{src} has {sources} lines, but {tgt} has {targets}: line n of one must translate line n of the other."
        )


def _content(path: Path) -> tuple[str, int]:
    """Return digest and line count, read once while the file stays as it is."""
    with one_line_errors(path):
        digest, lines = kept([path], ("sentences",), lambda: _read(path))
    return digest, lines


def _read(path: Path) -> tuple[str, int]:
    digest, lines = hashlib.sha256(), 0
    with _open(path) as file:
        for block in map(canonical, _blocks(file)):
            sentences = _decoded(block, path, lines).split("\n")
            digest.update("\n".join(map(readable, sentences)).encode())
            lines += len(sentences) - 1
    return digest.hexdigest(), lines


def _decoded(block: bytes, path: Path, before: int) -> str:
    """Decode; UserError with the number of the first line that is not UTF-8. The block begins after `before` lines."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = before + block.count(b"\n", 0, error.start) + 1
        wrong = f"byte 0x{block[error.start]:02x}, {error.reason}"
        raise UserError(f"{path}: line {line} is not UTF-8 ({wrong})") from None


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content in blocks of about CHUNK bytes, each ending at a line end."""
    begun: list[bytes] = []
    while chunk := file.read(CHUNK):
        ended, newline, rest = chunk.rpartition(b"\n")
        if newline:
            yield b"".join([*begun, ended, newline])
            begun = []
        begun.append(rest)
    yield b"".join(begun)


def read_pairs(src: Path, tgt: Path) -> list[Pair]:
    """Return all pairs of two parallel files, in order; as `stream_pairs`."""
    return list(stream_pairs(src, tgt))


def stream_pairs(src: Path, tgt: Path) -> Iterator[Pair]:
    """Yield all pairs of two parallel files, in order; pairs with an empty side are kept for the caller to count.

    Raises UserError for files of unequal length, or, in the end, without a pair that has two sides.
    """
    return checked_spoken(_aligned(src, tgt), f"{src} and {tgt}")


def _aligned(src: Path, tgt: Path) -> Iterator[Pair]:
    count = 0
    for source, target in zip_longest(stream_lines(src), stream_lines(tgt)):
        if source is None or target is None:
            count_pairs(src, tgt)  # says how many lines each has
            raise UserError(f"{src} and {tgt} changed while they were read.")
        yield readable(source), readable(target)
        count += 1
    _check_aligned(src, count, tgt, count)


def checked_spoken(pairs: Iterable[Pair], where: str) -> Iterator[Pair]:
    """Yield the pairs; in the end raise UserError unless one of them had two sides."""
    count, is_spoken = 0, False
    for source, target in pairs:
        yield source, target
        count += 1
        is_spoken = is_spoken or has_both_sides((source, target))
    if not is_spoken:
        raise UserError(f"{where}: each of the {count} pairs has an empty side; none is left.")


def stream_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, plain or `.gz`, of which little is in memory at a time."""
    before = 0
    with one_line_errors(path), _open(path) as file:
        for block in map(canonical, _blocks(file)):
            lines = _decoded(block, path, before).split("\n")[:-1]
            yield from lines
            before += len(lines)


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


@contextmanager
def one_line_errors(path: Path) -> Iterator[None]:
    """Turn the errors of reading a file into a UserError that names it."""
    try:
        yield
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, expected a file with one sentence per line.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is not a whole {path.suffix} file: {error}.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None


def _nearest(path: Path) -> str:
    """Return `; nearest there: train.de`, `; there is no folder corpus`, or an empty string."""
    if not path.parent.is_dir():
        return f"; there is no folder {path.parent}"
    near = get_close_matches(path.name, sorted(entry.name for entry in path.parent.iterdir()), n=1)
    return f"; nearest there: {near[0]}" if near else ""


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
    record = json_object(line)
    nested = record.get(NESTED)
    inside = record if not isinstance(nested, dict) or columns[0] in record else nested
    yield from (text_in(inside, name, "data.columns=[two,names]") for name in columns)


def json_object(line: str) -> dict[str, Any]:
    """Return a line of JSON as the object that it is; ValueError for any other."""
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("not readable as JSON; allowed: an object on every line") from None
    if not isinstance(record, dict):
        raise ValueError("no JSON object; allowed: an object on every line")
    return record


def text_in(record: Mapping[str, Any], name: str, allowed: str) -> str:
    """Return the text in a field of an object of JSON; ValueError where there is none. `allowed`: how to name one."""
    text = record.get(name)
    if not isinstance(text, str):
        having = ", ".join(str(key) for key, value in record.items() if isinstance(value, str)) or "none"
        raise ValueError(f"no text in the field {name}; fields with text: {having}; allowed: {allowed}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"half a surrogate pair in the field {name}; allowed: whole characters") from None
    return text
