"""Parallel text on disk: `<prefix>.<lang>`, plain or `.gz`, line n of one translating line n of the other.

The digest of a file is that of its text, decompressed: the same text is the same run, however it is packed.
"""

import codecs
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import IO, cast

from ablab.corpora.base import Pair, digest_of
from ablab.errors import UserError

CHUNK = 1 << 20

_digests: dict[tuple[Path, int, int], str] = {}
"""Digests already computed in this process, by path, size and time of change."""


def locate(prefix: str | Path, lang: str) -> Path:
    """The file `<prefix>.<lang>`, or else `<prefix>.<lang>.gz`; `~` is the home folder."""
    plain = Path(f"{Path(prefix).expanduser()}.{lang}")
    packed = plain.with_name(f"{plain.name}.gz")
    for path in (plain, packed):
        if path.is_dir():
            raise UserError(f"{path} is a folder, expected a file with one sentence per line.")
        if path.exists():
            return path
    raise UserError(f"no file {plain} or {packed.name}{_nearest(plain)}.")


def digest_of_pair(src: Path, tgt: Path) -> str:
    """Hex SHA-256 of the text of two parallel files; their names and places do not matter."""
    return digest_of([content_digest(src), content_digest(tgt)])


def content_digest(path: Path) -> str:
    """Hex SHA-256 of the decompressed bytes, remembered while the file keeps its size and time of change."""
    with _one_line_errors(path):
        stat = path.stat()
        key = (path.resolve(), stat.st_size, stat.st_mtime_ns)
        if key not in _digests:
            content = hashlib.sha256()
            with _open(path) as file:
                while chunk := file.read(CHUNK):
                    content.update(chunk)
            _digests[key] = content.hexdigest()
    return _digests[key]


def read_pairs(src: Path, tgt: Path) -> list[Pair]:
    """All pairs of two parallel files, in order. Pairs with an empty side are kept: who drops them counts."""
    sources, targets = read_lines(src), read_lines(tgt)
    if len(sources) != len(targets):
        raise UserError(
            f"{src} has {len(sources)} lines, but {tgt} has {len(targets)}: "
            "line n of one must translate line n of the other."
        )
    pairs = list(zip(sources, targets, strict=True))
    if not any(source.strip() and target.strip() for source, target in pairs):
        raise UserError(f"{src} and {tgt}: each of the {len(pairs)} pairs has an empty side; none is left.")
    return pairs


def read_lines(path: Path) -> list[str]:
    r"""The lines of a file, split at `\n` alone: Unicode's other line ends occur inside sentences."""
    with _one_line_errors(path), _open(path) as file:
        content = file.read()
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {line}: not UTF-8 (byte 0x{content[error.start]:02x}, {error.reason})."
        ) from None
    lines = text.removesuffix("\n").split("\n") if text else []
    if not lines:
        raise UserError(f"{path} is empty.")
    return [line.removesuffix("\r") for line in lines]


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


@contextmanager
def _one_line_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, expected a file with one sentence per line.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is not a whole .gz file: {error}.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None


def _nearest(path: Path) -> str:
    """`; nearest there: train.de`, `; there is no folder corpus`, or nothing."""
    if not path.parent.is_dir():
        return f"; there is no folder {path.parent}"
    near = get_close_matches(path.name, sorted(entry.name for entry in path.parent.iterdir()), n=1)
    return f"; nearest there: {near[0]}" if near else ""
