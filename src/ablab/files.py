"""Writing that is all or nothing: a reader sees the old content or the new, never half of either."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.lines import lines_of, text_of

LONGEST = 100
"""Bytes of a folder's name."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, put in its place when the block ends well and removed when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        # mkstemp makes files private; a shared store wants what any new file would get.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def half_written(folder: Path) -> Iterator[Path]:
    """What a kill has left of files and folders that were being replaced: `tempfile` gives them such names."""
    yield from (path for path in folder.glob(".*") if re.fullmatch(r"\..+\.[a-z0-9_]{8}", path.name))


def write_text(path: Path, text: str) -> None:
    """Replace the file's content at once."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, content: Any) -> None:
    """Replace the file's content at once. NaN is refused: JSON has none."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """The content of a JSON file; UserError where it is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not readable as JSON ({error})") from None


def write_lines(path: Path, sentences: Iterable[str]) -> None:
    """Replace the file's content at once, with one sentence a line."""
    write_text(path, text_of(sentences))


def read_lines(path: Path) -> list[str]:
    """The sentences that `write_lines` wrote, as many as there were; UserError where the file is not UTF-8."""
    return lines_of(path.read_bytes(), path)


def folder_name(text: str) -> str:
    """The text itself where that can be a folder; otherwise what is left of it, and a digest that keeps it apart."""
    if len(text.encode()) <= LONGEST and "/" not in text and not text.startswith(".") and text.isprintable():
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    kept = "".join(character if character.isprintable() and character != "/" else "_" for character in text)
    return f"{kept.lstrip('.')[:60].encode()[:LONGEST].decode(errors='ignore')}-{digest}"


def json_digest(content: object, digits: int) -> str:
    """So many hex digits of the SHA-256 of plain values, whatever the order of their keys."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
