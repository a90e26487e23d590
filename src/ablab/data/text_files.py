"""Parallel text files `<prefix>.<lang>`, plain or `.gz`: line n of one translates line n of the other.

The digest of a file is of its sentences, so that equal text gives the same run whatever the compression and line ends.
"""

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import IO, cast

from ablab.data.corpus import Pair, digest_of
from ablab.errors import UserError
from ablab.lines import canonical, lines_of

CHUNK = 1 << 20

_contents: dict[tuple[Path, int, int], tuple[str, int]] = {}
"""Digests and line counts computed in this process, by path, size and modification time."""


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
    """Return digest and line count, read once and cached while the file keeps its size and modification time."""
    with _one_line_errors(path):
        stat = path.stat()
        key = (path.resolve(), stat.st_size, stat.st_mtime_ns)
        if key not in _contents:
            digest, lines = hashlib.sha256(), 0
            with _open(path) as file:
                for block in map(canonical, _blocks(file)):
                    _check_utf8(block, path, lines)
                    digest.update(block)
                    lines += block.count(b"\n")
            _contents[key] = digest.hexdigest(), lines
    return _contents[key]


def _check_utf8(block: bytes, path: Path, before: int) -> None:
    """Raise UserError with the number of the first line that is not UTF-8; the block begins after `before` lines."""
    try:
        block.decode("utf-8")
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
    """Return all pairs of two parallel files, in order; pairs with an empty side are kept for the caller to count.

    Raises UserError for files of unequal length, or without a pair that has two sides.
    """
    sources, targets = read_lines(src), read_lines(tgt)
    _check_aligned(src, len(sources), tgt, len(targets))
    pairs = list(zip(sources, targets, strict=True))
    check_spoken(pairs, f"{src} and {tgt}")
    return pairs


def check_spoken(pairs: Sequence[Pair], where: str) -> None:
    """Raise UserError unless one of the pairs has two sides."""
    if not any(source.strip() and target.strip() for source, target in pairs):
        raise UserError(f"{where}: each of the {len(pairs)} pairs has an empty side; none is left.")


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file, plain or `.gz`."""
    with _one_line_errors(path), _open(path) as file:
        return lines_of(file.read(), path)


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
    """Return `; nearest there: train.de`, `; there is no folder corpus`, or an empty string."""
    if not path.parent.is_dir():
        return f"; there is no folder {path.parent}"
    near = get_close_matches(path.name, sorted(entry.name for entry in path.parent.iterdir()), n=1)
    return f"; nearest there: {near[0]}" if near else ""
