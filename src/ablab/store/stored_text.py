"""Raw text of test sets, stored once for all runs, so that neither corpus nor network is needed to read it again."""

from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from ablab.files import half_written, json_digest, read_lines, write_lines

SOURCES, REFERENCES = "sources.txt", "references.txt"


class StoredText(NamedTuple):
    """Sources and references of a test set, one line per sentence."""

    sources: list[str]
    references: list[str]


def keep_text(outputs: Path, name: str, text: StoredText) -> str:
    """Store a test set unless it is there; return the digest of name and content that evaluations refer to it by."""
    digest = json_digest([name, *text], 16)
    folder = _folder(outputs, digest)
    if not (folder / REFERENCES).exists():
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            for left in half_written(folder):  # by a kill: nobody else is writing here
                left.unlink()
            write_lines(folder / SOURCES, text.sources)
            write_lines(folder / REFERENCES, text.references)
    return digest


def stored_text(outputs: Path, digest: str) -> StoredText | None:
    """Return the test set of this digest; None if a file of it is gone."""
    folder = _folder(outputs, digest)
    files = [folder / SOURCES, folder / REFERENCES]
    return StoredText(*map(read_lines, files)) if all(file.exists() for file in files) else None


def is_stored_text(outputs: Path, name: str, digest: str) -> bool | None:
    """Return whether the stored test set of this name is the one of this digest; None if a file of it is gone."""
    text = stored_text(outputs, digest)
    return None if text is None else json_digest([name, *text], 16) == digest


def _folder(outputs: Path, digest: str) -> Path:
    return outputs / "corpora" / digest
