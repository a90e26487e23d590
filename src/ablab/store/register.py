"""The register of a store: a line for each result and registration, each with the digest of the line before it.

Files can be edited and folders deleted; the register shows afterwards that they were. Every file of a run or study that
it covers has its name only once it is entered, so that a kill at any moment leaves no file without an entry.
"""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from ablab.files import sha256, write_json
from ablab.files.disk import end_of_lines, keep_names, lock_at, rename
from ablab.store.records import now

REGISTER = "register.jsonl"
"""File of the register, at the top of a store."""

POLL = 0.005
"""Seconds between two tries for the lock: an append holds it for a few milliseconds."""

DIGITS = 16
"""Hex digits of each SHA-256 in the register."""

ORIGIN = DIGITS * "0"
"""What stands in the first line for the digest of the line before."""

WAITING = "entering"
"""Ending of a file that is whole and has no entry yet, of a length by which `half_written` recognises it."""


LOOP = "loop"
"""What is entered of a loop's ledger, each time whole; of the other files of a study, each entry adds to them."""

OF_STUDIES = ("registered", "extended", "closed", LOOP)
"""What is entered of a study, each time with a file of that name."""


CLAIMS = "claims"
"""What is entered of claims about a table, and the folder of what was registered."""


def claims_path(store: Path, name: str) -> Path:
    """Return the path of registered claims in a store."""
    return store / CLAIMS / name


class Entry(BaseModel):
    """A line of the register.

    `what`: begun, written (a file of a run), registered, extended or closed (a study), loop (its ledger), claims (about
    a table), set aside, restored or erased (a run).
    `digest`: of the bytes of the file; of a run that is restored, of its record. `runs`, `files`: of the first entry,
    the runs that had ended before the register began, and the digests of the files of studies. `before`: digest of the
    line before.
    """

    model_config = ConfigDict(frozen=True)

    at: str
    what: str
    run: str | None = None
    study: str | None = None
    file: str | None = None
    digest: str | None = None
    runs: tuple[str, ...] = ()
    files: dict[str, str] | None = None
    before: str

    @property
    def path(self) -> str | None:
        """The file that was entered, relative to the store; None where the entry is not about a file."""
        if self.what == "written":
            return f"runs/{self.run}/{self.file}"
        if self.what == CLAIMS:
            return f"{CLAIMS}/{self.file}"
        return f"studies/{self.study}/{self.what}.json" if self.what in OF_STUDIES else None


@dataclass(frozen=True)
class Register:
    """The register of the store in this folder, for writing; `chain.Chain` reads it."""

    store: Path

    @property
    def path(self) -> Path:
        return self.store / REGISTER

    def write(self, path: Path, content: Any, what: str, **about: str) -> None:
        """Write a JSON file and enter it; `what` and `about`: as in `Entry`. `chain.complete` repairs what a kill left.

        The entry comes between writing and naming: a file that was never entered then came from elsewhere.
        """
        waiting = waiting_for(path)
        write_json(waiting, content)
        self.append(what, **about, digest=file_digest(waiting))
        rename(waiting, path)

    def append(self, what: str, **about: str) -> None:
        """Append an entry, which is on disk when this returns. Raises OSError, and then leaves no entry."""
        self.store.mkdir(parents=True, exist_ok=True)
        lock = lock_at(self.store / f".{REGISTER}.lock")
        with lock.acquire(poll_interval=POLL), self.path.open("ab+", buffering=0) as file:
            end, last = _last_line(file)
            file.truncate(end)  # a line without its end was never acknowledged
            begun = b""
            if last is None:
                keep_names(self.store)
                begun = _line("begun", ORIGIN, runs=ended_runs(self.store), files=_files(self.store))
                last = begun.rstrip()
            _write_out(file, begun + _line(what, line_digest(last), **about), end)


def ended_runs(store: Path) -> list[str]:
    """Return the ids of all runs with a record on disk, those in `superseded/` included."""
    there = {path.parent.name for path in store.glob("runs/*/record.json")}
    aside = {path.parent.name.rpartition("-")[0] for path in store.glob("superseded/*/record.json")}
    return sorted(there | aside)


def waiting_for(path: Path) -> Path:
    """Return where the content of `path` waits for its entry."""
    return path.with_name(f".{path.name}.{WAITING}")


def as_entered(path: Path, digest: str | None) -> Path:
    """Return where the content that was entered lies: `path`, or beside it, where a kill came before its naming."""
    waiting = waiting_for(path)
    try:
        return waiting if digest is not None and file_digest(waiting) == digest else path
    except OSError:  # none waits, or none any more
        return path


def is_waiting(path: Path) -> bool:
    """Return whether the file waits for its entry under a name by `waiting_for`."""
    return path.name.endswith(f".{WAITING}")


def waited_for(waiting: Path) -> Path:
    """Return the path that a waiting file is to have."""
    return waiting.with_name(waiting.name.removeprefix(".").removesuffix(f".{WAITING}"))


def file_digest(path: Path) -> str:
    """Return the digest of a file's bytes, as long as the register has it."""
    return sha256(path)[:DIGITS]


def line_digest(line: bytes) -> str:
    """Return the digest of a line without its end."""
    return hashlib.sha256(line).hexdigest()[:DIGITS]


def _files(store: Path) -> dict[str, str]:
    found = [path for name in OF_STUDIES for path in store.glob(f"studies/*/{name}.json")]
    return {path.relative_to(store).as_posix(): file_digest(path) for path in sorted(found)}


def _line(what: str, before: str, **about: Any) -> bytes:
    entry = Entry(at=now(), what=what, before=before, **about)
    return entry.model_dump_json(exclude_defaults=True).encode() + b"\n"


def _last_line(file: FileIO) -> tuple[int, bytes | None]:
    """Return the position after the last whole line, and that line without its end; None where there is none."""
    if (end := end_of_lines(file)) == 0:
        return 0, None
    begin = file.seek(end_of_lines(file, end - 1))
    return end, file.read(end - 1 - begin)


def _write_out(file: FileIO, lines: bytes, end: int) -> None:
    try:
        left = lines
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            file.truncate(end)
        raise
