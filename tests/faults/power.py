"""What a loss of power leaves of a folder: the content of files, and the names in folders, that were synced by then.

Read from the journal of the interposer. POSIX promises no more: neither that a name is kept with its file, nor that a
file that has its name has its content. File systems keep some of the rest, in an order of their own; so two disks are
looked at. On one, nothing is kept that was not synced. On the other, names are kept at once, and content is not.
"""

import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ablab.files.disk import ABANDONED

UNSEEN = re.compile(r"\.tmp[A-Za-z0-9]{6}")
"""Names that safetensors gives away without libc, which the interposer replaces: the other name is seen at its sync."""

HASTY, LAZY = "names at once", "nothing that was not synced"


@dataclass(eq=False)
class File:
    """`copy`: of the content that was synced last; None: it is empty, if its name is there."""

    copy: str | None = None

    def kept(self, disk: str) -> object:
        return self.copy

    def write(self, path: Path, journal: Path, disk: str) -> None:
        if self.copy is None:
            path.touch()
        else:
            shutil.copyfile(journal / self.copy, path)
        if path.name.startswith("."):  # as old as what a machine left that has started again
            then = time.time() - 2 * ABANDONED
            os.utime(path, (then, then))


@dataclass(eq=False)
class Link:
    target: str

    def kept(self, disk: str) -> object:
        return self.target

    def write(self, path: Path, journal: Path, disk: str) -> None:
        path.symlink_to(self.target)


@dataclass(eq=False)
class Folder:
    """`now`: what running programs see. `synced`: what was there when the folder was synced last."""

    now: dict[str, "Node"] = field(default_factory=dict)
    synced: dict[str, "Node"] = field(default_factory=dict)

    def of(self, disk: str) -> dict[str, "Node"]:
        return self.now if disk == HASTY else self.synced

    def kept(self, disk: str) -> object:
        return tuple((name, type(node), node.kept(disk)) for name, node in sorted(self.of(disk).items()))

    def write(self, path: Path, journal: Path, disk: str) -> None:
        path.mkdir(exist_ok=True)
        for name, node in self.of(disk).items():
            node.write(path / name, journal, disk)


Node = File | Folder | Link


@dataclass(frozen=True)
class Cut:
    """A loss of power after so many lines of the journal, and the disk. `said`: all that was printed before."""

    after: int
    disk: str
    said: str


class Journal:
    """What one command did to the files below a folder."""

    def __init__(self, journal: Path, folder: Path) -> None:
        self.journal, self.folder = journal, folder
        text = (journal / "log").read_text(encoding="utf-8", errors="replace")
        self.lines = [line.split("\t") for line in text.splitlines()]

    def cuts(self) -> list[Cut]:
        """The moments at which either disk would be left in another state than at any moment before."""
        found, seen, said = [], set(), ""
        for after, top in enumerate(self._states()):
            said += self.lines[after - 1][1] if after and self.lines[after - 1][0] == "said" else ""
            for disk in (LAZY, HASTY):
                state = disk, top.kept(disk)
                if state not in seen:
                    seen.add(state)
                    found.append(Cut(after, disk, said))
        return [*found, *(Cut(len(self.lines), disk, said) for disk in (LAZY, HASTY))]

    def restore(self, cut: Cut) -> None:
        """Leave in the folder what such a loss of power leaves."""
        shutil.rmtree(self.folder, ignore_errors=True)
        top = next(top for after, top in enumerate(self._states()) if after == cut.after)
        top.write(self.folder, self.journal, cut.disk)

    def told(self, cut: Cut) -> str:
        """The line before it, for a person."""
        return f"power lost after {self.lines[cut.after - 1]} ({cut.after} of {len(self.lines)}), {cut.disk}"

    def _states(self) -> Iterator[Folder]:
        top = Folder()
        yield top
        for what, one, other in self.lines:
            self._do(top, what, one, other)
            yield top

    def _do(self, top: Folder, what: str, one: str, other: str) -> None:
        if what == "said":
            return
        if what == "names":
            folder = self._at(top, one)
            assert isinstance(folder, Folder)
            folder.synced = dict(folder.now)
        elif what == "content":
            file = self._at(top, one)
            assert isinstance(file, File)
            file.copy = other
        elif what == "remove":
            self._names(top, one).pop(Path(one).name, None)
        elif what == "file" and UNSEEN.fullmatch(Path(one).name):
            return
        elif what in ("file", "folder"):
            self._names(top, one)[Path(one).name] = File() if what == "file" else Folder()
        elif what == "symlink":
            self._names(top, other)[Path(other).name] = Link(one)
        else:
            node = self._at(top, one)
            self._names(top, other)[Path(other).name] = node
            if what == "rename" and one != other:
                self._names(top, one).pop(Path(one).name)

    def _names(self, top: Folder, path: str) -> dict[str, Node]:
        """The names in the folder of a path."""
        folder = self._at(top, str(Path(path).parent))
        assert isinstance(folder, Folder)
        return folder.now

    def _at(self, top: Folder, path: str) -> Node:
        node: Node = top
        for name in Path(path).relative_to(self.folder).parts:
            assert isinstance(node, Folder)
            # What a library makes by a call that is not seen is a file, and known from its first other call on.
            node = node.now.setdefault(name, File())
        return node
