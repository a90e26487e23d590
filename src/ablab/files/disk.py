"""The one way of writing to disk: a reader sees the old content or the new, and a loss of power keeps one of them.

Content is on disk before it gets its name, and the name before anybody is told that it is there. Locks are the
operating system's, so that they end with their process.
"""

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ablab.errors import MachineError, UserError

if TYPE_CHECKING:
    from filelock import FileLock


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it replaces `path` if the block succeeds and is removed otherwise.

    What has been replaced outlives a loss of power; what one left of an earlier try is removed. A disk that is full or
    fails raises OSError with the name of `path`, whatever a library makes of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        remove_abandoned(halves_of(path), temporary.stat().st_mtime)
        with naming(path):
            yield temporary
        # mkstemp makes files private; a shared store needs the permissions of any new file.
        temporary.chmod(0o666 & ~_umask())
        publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def publish(made: Path, path: Path) -> None:
    """Let a file, or a folder with all below it, take the place of `path`: on disk first, and then named.

    Whatever the moment of a loss of power, `path` is then as it was before or as it was made. The guards of the folder
    are asked in between.
    """
    with naming(path):
        sync(made)
    check_guards(path)
    rename(made, path)


def rename(made: Path, path: Path) -> None:
    """Give another name to a file or folder that is on disk; the name is on disk too when this returns."""
    with naming(path):
        made.replace(path)
        if made.parent != path.parent:
            keep_names(made.parent)
        keep_names(path.parent)


def move(path: Path, place: Path) -> None:
    """Move a folder, also to another file system; it is on disk at its place when this returns."""
    try:
        shutil.move(path, place)
    except shutil.Error as error:  # of a copy to another file system, which ends before the original is removed
        shutil.rmtree(place, ignore_errors=True)
        raise OSError(errno.EIO, str(error.args[0][0][2]), str(place)) from None
    with naming(place):
        sync(place)
        keep_names(place.parent)
        keep_names(path.parent)


def sync(path: Path) -> None:
    """Return once the content of a file is on disk, or that of all files below a folder with their names."""
    for folder, _, names in os.walk(path):
        for name in names:
            _sync(Path(folder, name))
        _sync(Path(folder))
    if not path.is_dir():
        _sync(path)


def keep_names(folder: Path) -> None:
    """Return once the names in a folder are on disk, and its own name and those of the folders above it.

    The latter are synced once in a process: nobody need tell which folders are new.
    """
    _sync(folder)
    for below in (whole := folder.resolve(), *whole.parents):
        place = str(below), below.stat().st_ino
        if place in _NAMED:
            return
        _sync(below.parent)
        _NAMED.add(place)


_NAMED: set[tuple[str, int]] = set()
"""Folders whose names are known to be on disk, with their inodes: a folder that is made anew has another."""

UNSYNCED = (errno.EACCES, errno.EPERM, errno.EINVAL, errno.EROFS, errno.ENOTSUP)
"""Answers for a folder that may not be read, on a file system that cannot be written, or that has no sync of folders:
there is nothing more to do for its names."""


def _sync(path: Path) -> None:
    is_folder = path.is_dir()
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if not is_folder or error.errno not in UNSYNCED:
            raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Within the block, a disk that is full or fails raises OSError with the name of `path`."""
    try:
        yield
    except Exception as error:
        if (number := _of_the_disk(error)) is not None:
            raise OSError(number, os.strerror(number), str(path)) from error
        raise


_GUARDS: list[tuple[Path, Callable[[], None]]] = []


@contextmanager
def guarded(folder: Path, check: Callable[[], None]) -> Iterator[None]:
    """While the block runs, call `check` before each file below `folder` is replaced; what it raises prevents that."""
    guard = (folder, check)
    _GUARDS.append(guard)
    try:
        yield
    finally:
        _GUARDS.remove(guard)


def check_guards(path: Path) -> None:
    """Call the checks of the folders that the path lies below."""
    for folder, check in _GUARDS:
        if path.is_relative_to(folder):
            check()


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Create the folder and run the block; UserError if the system refuses to write there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UserError(f"outputs: nothing can be written in {folder} ({error.strerror})") from None


def lock_at(path: Path, timeout: float = -1) -> "FileLock":
    """Return the lock of the operating system at `path`, which ends with its process, even a killed one.

    `timeout`: seconds to wait for it, at most; -1: for ever. Acquiring it raises MachineError on a file system without
    such locks. A file in place of one would outlive a kill, and then nobody could go on.
    """
    return _kind_of_lock()(path, timeout)


@cache
def _kind_of_lock() -> type["FileLock"]:
    from filelock import FileLock  # what reads sources, and takes digests, does without

    class SystemLock(FileLock):
        def _acquire(self) -> None:
            try:
                super()._acquire()
            except NotImplementedError:
                raise _without_locks(Path(self.lock_file)) from None
            except OSError as error:
                if error.errno in LOCKLESS:
                    raise _without_locks(Path(self.lock_file)) from None
                raise

        def _fallback_to_soft_lock(self) -> None:
            raise NotImplementedError  # as older filelocks do by themselves; newer ones would make a file

    return SystemLock


LOCKLESS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)
"""Answers of file systems that have no locks, or whose server of locks does not run."""


def _without_locks(path: Path) -> MachineError:
    return MachineError(
        f"{path.parent}: lies on a file system without locks (flock); allowed: one that has them (Lustre: mounted with "
        "-o flock; NFS: with its lock service)"
    )


def half_written(folder: Path) -> Iterator[Path]:
    """Yield files and folders that a kill left half-written, recognised by their names.

    `tempfile` adds eight characters to the name that the file is to have; safetensors writes into `.tmp` and six.
    """
    names = re.compile(r"\..+\.[a-z0-9_]{8}|\.tmp[A-Za-z0-9]{6}")
    yield from (path for path in folder.glob(".*") if names.fullmatch(path.name))


def halves_of(path: Path) -> Iterator[Path]:
    """Yield what was to become this file or folder. Its folder may hold as many others as a store has runs."""
    before = f".{path.name}."
    likely = [name for name in os.listdir(path.parent) if name.startswith(before)]
    yield from (path.with_name(name) for name in likely if re.fullmatch("[a-z0-9_]{8}", name[len(before) :]))


ABANDONED = 60.0
"""Seconds after its last change from which a half-written file is nobody's: a machine takes longer to start again."""


def remove_abandoned(halves: Iterable[Path], now: float) -> None:
    """Remove those that nobody writes any more; `now`: by the clock of their disk, where that is known."""
    for left in halves:
        with suppress(OSError):  # its writer may just have named it, or it is another user's
            if now - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def end_of_lines(file: BinaryIO | FileIO, before: int | None = None) -> int:
    """Return the position after the last whole line, of those that end before `before` if that is given.

    What follows it, a kill has torn. It reads from the end, so that the length of the file does not matter.
    """
    end = file.seek(0, os.SEEK_END) if before is None else before
    while end:
        start = max(0, end - (1 << 14))
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG)
"""The system's numbers of errors that are the disk's, and no fault of the program."""


def _of_the_disk(error: BaseException) -> int | None:
    """Return the system's number of a disk's error behind an error of a library, or None.

    torch raises one of its own while Python's is handled; safetensors has the number in its message.
    """
    cause: BaseException | None = error
    while cause is not None:
        told = re.search(r"\(os error (\d+)\)", str(cause))
        number = cause.errno if isinstance(cause, OSError) else int(told[1]) if told else None
        if number in OF_THE_DISK:
            return number
        cause = cause.__cause__ or cause.__context__
    return None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
