"""What runs share, stored once: definitions behind code digests, and raw text of test sets.

Records need only name definitions. They tell in what code differs; whether it differs, the digests in the records tell
alone. With the text, neither corpus nor network is needed to read a test set again.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from ablab.files import json_digest, read_lines, write_lines, write_text
from ablab.files.disk import half_written, lock_at

DIGEST = "definitions_digest"
"""The entry of provenance that stands in a file for its definitions."""

Definitions = Mapping[str, Mapping[str, str]]
"""Digests of definitions by their names, by stage, as in `machine.provenance`."""

_DEFINITIONS = TypeAdapter(dict[str, dict[str, str]])


def place_of(digest: str) -> str:
    """Return where definitions of this digest lie in a store."""
    return f"code/{digest}.json"


def keep_code(outputs: Path, definitions: Definitions) -> str:
    """Store definitions unless they are there whole; return the digest of the file, which names it."""
    text = json.dumps(definitions, indent=1, sort_keys=True) + "\n"
    digest = _digest(text.encode())
    path = outputs / place_of(digest)
    if not is_stored_code(outputs, digest):
        path.parent.mkdir(parents=True, exist_ok=True)
        with lock_at(outputs / ".code.lock"):
            for left in half_written(path.parent):  # by a kill: nobody else is writing here
                left.unlink()
            write_text(path, text)
    return digest


def is_stored_code(outputs: Path, digest: str) -> bool | None:
    """Return whether the file of this digest is as it was stored; None if it is gone."""
    try:
        _read(outputs / place_of(digest), digest)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return False
    return True


def without_definitions(provenance: Mapping[str, Any], outputs: Path) -> dict[str, Any]:
    """Return provenance as a file has it: its definitions are stored, and it names them."""
    light = {key: value for key, value in provenance.items() if key != "definitions"}
    if "definitions" in provenance:
        light[DIGEST] = keep_code(outputs, provenance["definitions"])
    return light


def with_definitions(provenance: dict[str, Any], outputs: Path) -> dict[str, Any]:
    """Return provenance with the definitions that it names; without any where they are gone or were altered."""
    digest = provenance.get(DIGEST)
    if digest is None:
        return provenance
    try:
        return {**provenance, "definitions": _shared(outputs / place_of(digest), digest)}
    except (OSError, ValueError):
        return provenance


@cache
def _shared(path: Path, digest: str) -> Definitions:
    """Read definitions once for all records that name them; what cannot be read is tried again."""
    return _read(path, digest)


def _read(path: Path, digest: str) -> Definitions:
    content = path.read_bytes()
    if _digest(content) != digest:
        raise ValueError(f"{path}: is not what was stored")
    return _DEFINITIONS.validate_json(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


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
        with lock_at(folder.with_suffix(".lock")):
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
