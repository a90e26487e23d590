"""Reading of a store's register: whether its lines follow each other, and what each file and run must be now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from ablab.files.disk import rename
from ablab.store.register import ORIGIN, REGISTER, Entry, file_digest, line_digest, waiting_for

RECORD = "record.json"


@dataclass
class History:
    """What the register knows of a run.

    `is_older`: the run ended before the register began. `files`: the digest of each file since the run was last begun.
    `times_set_aside`: after it had ended. `replaced`: digests of records that another followed although the run had not
    been set aside; None for one older than the register. `made_again`: files that were entered twice. `aside`: what
    was known of the run each time that it was set aside, without those that were brought back.
    """

    is_older: bool = False
    files: dict[str, str] = field(default_factory=dict)
    times_set_aside: int = 0
    replaced: list[str | None] = field(default_factory=list)
    made_again: set[str] = field(default_factory=set)
    aside: list[tuple[bool, dict[str, str]]] = field(default_factory=list)

    @property
    def has_ended(self) -> bool:
        """True if the run ended and was not set aside since."""
        return self.is_older or RECORD in self.files

    def take(self, entry: Entry) -> None:
        """Add the next entry of the run."""
        if entry.what == "set aside":
            self.times_set_aside += self.has_ended
            self.aside.append((self.is_older, self.files))
            self.is_older, self.files = False, {}
        elif entry.what == "restored":
            self._restored(entry.digest)
        elif entry.what == "written" and entry.file is not None and entry.digest is not None:
            self._written(entry.file, entry.digest)

    def _restored(self, digest: str | None) -> None:
        """Know again what was known of the run with this record; one that was never entered stays unknown."""
        for at, (is_older, files) in reversed([*enumerate(self.aside)]):
            if is_older or files.get(RECORD) == digest:
                del self.aside[at]
                self.is_older, self.files = is_older, files
                self.times_set_aside -= self.has_ended
                return

    def _written(self, file: str, digest: str) -> None:
        if file == RECORD:
            if self.has_ended:
                self.replaced.append(self.files.get(RECORD))
            self.is_older, self.files = False, {}
        elif file in self.files:
            self.made_again.add(file)
        self.files[file] = digest


@dataclass(frozen=True)
class Chain:
    """The lines of a register. `digests`: of each line. `entries`: of those that can be read.

    `unreadable`, `broken`: numbers, from 1, of lines that are no entry, or that do not follow the line before.
    """

    digests: Sequence[str]
    entries: Sequence[Entry]
    unreadable: Sequence[int]
    broken: Sequence[int]

    @classmethod
    def of(cls, store: Path) -> "Chain":
        """Read the register of the store in this folder; it is empty where there is none."""
        try:
            return cls.read((store / REGISTER).read_bytes())
        except FileNotFoundError:
            return cls.read(b"")

    @classmethod
    def read(cls, content: bytes) -> "Chain":
        """Read the bytes of a register."""
        lines = content.split(b"\n")[:-1]  # what follows the last end of a line is being written, or was torn
        digests = [line_digest(line) for line in lines]
        read = [_entry(line) for line in lines]
        before = [ORIGIN, *digests]
        return cls(
            digests,
            [entry for entry in read if entry is not None],
            [number for number, entry in enumerate(read, 1) if entry is None],
            [number for number, entry in enumerate(read, 1) if entry and entry.before != before[number - 1]],
        )

    @property
    def stamp(self) -> str | None:
        """The number of lines and the digest of the last, such as `57:3f9a1c0d2b4e5f60`; None without a register."""
        return f"{len(self.digests)}:{self.digests[-1]}" if self.digests else None

    def bears(self, stamp: str) -> bool:
        """Return whether the register ended with this stamp once."""
        number, _, digest = stamp.partition(":")
        return number.isdecimal() and 0 < int(number) <= len(self.digests) and self.digests[int(number) - 1] == digest

    def up_to(self, line: int) -> "Chain":
        """Return the register as it was when it ended with this line."""
        unreadable, broken = ([number for number in each if number <= line] for each in (self.unreadable, self.broken))
        return Chain(self.digests[:line], self.entries[: line - len(unreadable)], unreadable, broken)

    @cached_property
    def histories(self) -> Mapping[str, History]:
        """The history of every run that the register knows, by its id."""
        found: dict[str, History] = {}
        for entry in self.entries:
            if entry.what == "begun":
                found.update({run: History(is_older=True) for run in entry.runs})
            elif entry.run is not None:
                found.setdefault(entry.run, History()).take(entry)
        return found

    @property
    def ended(self) -> set[str]:
        """The ids of all runs that have ever ended, even if they were set aside or deleted since."""
        return {run for run, history in self.histories.items() if history.has_ended or history.times_set_aside}

    def of_study(self, study: str, what: str) -> list[Entry]:
        """Return a study's entries of one kind, registered or closed, oldest first."""
        return [entry for entry in self.entries if entry.study == study and entry.what == what]

    @cached_property
    def older_files(self) -> Mapping[str, str]:
        """Digests of files of studies from before the register began, by their path in the store."""
        return {path: digest for entry in self.entries for path, digest in (entry.files or {}).items()}

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The digest that each file must have now, by its path in the store."""
        found = dict(self.older_files)
        for entry in self.entries:
            if entry.run is None and entry.path is not None and entry.digest is not None:
                found[entry.path] = entry.digest
        for run, history in self.histories.items():
            found.update({f"runs/{run}/{file}": digest for file, digest in history.files.items()})
        return found


def complete(store: Path, path: Path) -> None:
    """If a kill has left the file waiting for its name, give it the name if it was entered, and remove it otherwise."""
    waiting = waiting_for(path)
    if not waiting.exists():
        return
    if Chain.of(store).files.get(path.relative_to(store).as_posix()) == file_digest(waiting):
        rename(waiting, path)
    else:
        waiting.unlink()


def _entry(line: bytes) -> Entry | None:
    try:
        return Entry.model_validate_json(line)
    except ValidationError:
        return None
