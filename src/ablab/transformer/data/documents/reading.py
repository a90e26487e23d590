"""Documents in files: plain, `.gz` or `.zst`, separated as users write them, or one in each line of JSON."""

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import IO, cast

from ablab.errors import MachineError, UserError, is_installed
from ablab.transformer.data.text_files import json_object, one_line_errors, text_in

JSON_LINES = (".jsonl", ".ndjson")
PACKED = (".gz", ".zst")

CHUNK = 1 << 20
"""Bytes that are read at a time."""

WINDOW = 1 << 31
"""Most bytes before that a .zst file may refer to: dumps are packed with `zstd --long=31`."""

FILE, BLANK_LINE, LINE = "file", "blank_line", "line"
"""Values of `data.separator`: a document is a file, a paragraph, or a line. Any other is a line between documents."""


def files_of(names: Sequence[str]) -> list[Path]:
    """Return the files that these paths, folders and patterns name, sorted within each; UserError where one has none.

    Of a folder all files below it count, but hidden ones.
    """
    found = [path for name in names for path in _files_of(name)]
    real = [path.resolve() for path in found]
    if len(set(real)) < len(real):
        twice = next(path for path, place in zip(found, real, strict=True) if real.count(place) > 1)
        raise UserError(f"{twice} is named twice; allowed: each file once")
    return found


def _files_of(name: str) -> list[Path]:
    path = Path(name).expanduser()
    if path.is_dir():
        inside = [each for each in path.rglob("*") if not any(part[0] == "." for part in each.relative_to(path).parts)]
        files = _that_are_there(inside)
        for folder in (each for each in inside if each.is_symlink() and each.is_dir()):
            raise UserError(f"{folder} is a link to a folder, which is not followed; allowed: to name that folder, too")
        if not files:
            raise UserError(f"{path} is a folder without files; allowed: files of text")
        return files
    if path.is_file():
        return [path]
    if path.exists():
        raise UserError(f"{path} is a pipe or a device; allowed: a file, which can be read twice")
    files = _that_are_there(map(Path, glob(str(path), recursive=True))) if has_magic(str(path)) else []
    if not files:
        raise UserError(f"no file {path}; allowed: a file, a folder, or a pattern such as texts/*.txt")
    return files


def _that_are_there(paths: Iterable[Path]) -> list[Path]:
    """Return the files among them, sorted; UserError for a link to what is not there, as on a disk that is gone."""
    found = sorted(paths)
    for path in found:
        if path.is_symlink() and not path.exists():
            raise UserError(f"{path} is a link to what is not there; allowed: links to files that can be read")
    return [path for path in found if path.is_file()]


def is_json(path: Path) -> bool:
    """Return whether a file has a JSON object on each line, by its name."""
    return unpacked_name(path).endswith(JSON_LINES)


def unpacked_name(path: Path) -> str:
    """Return a file's name in lower case, without the ending that says how it is packed."""
    return path.name.lower().removesuffix(_packing(path))


def check_readable(path: Path) -> None:
    """Raise MachineError where a library that the file needs is missing."""
    if _packing(path) == ".zst" and not is_installed("zstandard"):
        raise MachineError(f"{path}: zstandard is needed; pip install 'ablab[text]' brings it")


def read_documents(path: Path, separator: str, field: str) -> Iterator[str]:
    r"""Yield the documents of a file, those without anything to read left out; line ends are read as `\n`.

    `field`: of the JSON objects. UserError names the file, and the line that is not UTF-8 or not JSON.
    """
    with one_line_errors(path):
        blocks = _text(_blocks(_chunks(path)), path)
        split = SPLITS.get(separator) or _by_line_of(separator)
        documents = _of_json(blocks, path, field) if is_json(path) else split(blocks)
        yield from (document for document in documents if not _is_empty(document))


def has_line(path: Path, separator: str) -> bool:
    """Return whether a line of the file is the separator, so that something parts its documents."""
    with one_line_errors(path):
        return any(line.strip() == separator for line in _lines(_text(_blocks(_chunks(path)), path)))


def _is_empty(document: str) -> bool:
    return not document or document.isspace()


def _packing(path: Path) -> str:
    return packing if (packing := path.suffix.lower()) in PACKED else ""


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield the unpacked content of a file in chunks; ValueError if it is cut short."""
    packing = _packing(path)
    with cast(IO[bytes], gzip.open(path, "rb")) if packing == ".gz" else path.open("rb") as file:
        chunks = iter(lambda: file.read(CHUNK), b"")
        yield from _unpacked(chunks) if packing == ".zst" else chunks


def _unpacked(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Unpack Zstandard frames, of which a file may have several. The library's own reader takes a part for a whole."""
    import zstandard

    frame = None
    for chunk in chunks:
        while chunk:
            frame = frame or zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()
            try:
                yield frame.decompress(chunk)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from None
            chunk, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError("it ends within a frame")


def _blocks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the content in blocks that end at a line end."""
    begun: list[bytes] = []
    for chunk in chunks:
        ended, newline, rest = chunk.rpartition(b"\n")
        if newline:
            yield b"".join([*begun, ended, newline])
            begun = []
        begun.append(rest)
    if rest := b"".join(begun):
        yield rest


def _text(blocks: Iterator[bytes], path: Path) -> Iterator[str]:
    """Decode blocks; UserError with the number of the first line that is no text in UTF-8."""
    before = 0
    for number, block in enumerate(blocks):
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            line = before + block.count(b"\n", 0, error.start) + 1
            wrong = f"byte 0x{block[error.start]:02x}, {error.reason}"
            raise UserError(f"{path}: line {line} is not UTF-8 ({wrong})") from None
        if (zero := text.find("\0")) >= 0:
            line = before + text.count("\n", 0, zero) + 1
            raise UserError(f"{path}: line {line} has a zero byte, as archives and UTF-16 do; allowed: text in UTF-8")
        before += block.count(b"\n")
        text = text.replace("\r\n", "\n") if "\r" in text else text
        yield text.removeprefix("\ufeff") if number == 0 else text


Split = Callable[[Iterator[str]], Iterator[str]]


def _whole(blocks: Iterator[str]) -> Iterator[str]:
    yield "".join(blocks)


def _lines(blocks: Iterator[str]) -> Iterator[str]:
    for block in blocks:
        yield from block.removesuffix("\n").split("\n")


def _by_blank_lines(blocks: Iterator[str]) -> Iterator[str]:
    return _joined(_lines(blocks), _is_empty)


def _by_line_of(separator: str) -> Split:
    """Return what splits text at each line that is `separator`, spaces around it aside."""
    return lambda blocks: _joined(_lines(blocks), lambda line: line.strip() == separator)


def _joined(lines: Iterator[str], ends: Callable[[str], bool]) -> Iterator[str]:
    begun: list[str] = []
    for line in lines:
        if ends(line):
            yield "\n".join(begun)
            begun = []
        else:
            begun.append(line)
    yield "\n".join(begun)


SPLITS: dict[str, Split] = {FILE: _whole, BLANK_LINE: _by_blank_lines, LINE: _lines}


def _of_json(blocks: Iterator[str], path: Path, field: str) -> Iterator[str]:
    for number, line in enumerate(_lines(blocks), 1):
        if not _is_empty(line):
            try:
                record = json_object(line)
                if record.get(field, "") is not None:  # null: this one has no text
                    yield text_in(record, field, "data.field=NAME")
            except ValueError as error:
                raise UserError(f"{path}: line {number}: {error}") from None
