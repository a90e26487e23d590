"""Folders of files that are made once for all runs: whole, as a manifest with their digests says, or absent."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ablab.errors import UserError
from ablab.files import sha256
from ablab.files.disk import half_written, lock_at, publish
from ablab.transformer.data.kept import LARGE, is_settled, read_kept, state_of, write_kept

MANIFEST = "manifest.json"
"""The file that is written last. Its `sha256` has the digest of each other file."""


@contextmanager
def unless_whole(folder: Path) -> Iterator[Path | None]:
    """Yield None if all files of the folder are there; otherwise an empty folder, which takes its place in the end.

    Safe in concurrent processes: one makes the folder, and the others wait for it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock_at(folder.with_suffix(".lock")):
        if _is_whole(folder):
            yield None
            return
        with _made_beside(folder) as made:
            yield made
            made.chmod(0o755)
            if folder.exists():
                shutil.rmtree(folder)
            publish(made, folder)


@contextmanager
def temporary(folder: Path) -> Iterator[Path]:
    """Yield an empty folder beside this one, removed in the end; other processes wait."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock_at(folder.with_suffix(".lock")), _made_beside(folder) as made:
        yield made


@contextmanager
def _made_beside(folder: Path) -> Iterator[Path]:
    """Yield an empty folder, removed in the end. Only the holder of its lock comes here: others were left by a kill."""
    for left in half_written(folder.parent):
        if left.name.startswith(f".{folder.name}."):
            shutil.rmtree(left)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _is_whole(folder: Path) -> bool:
    """Return whether all files are those of the manifest. Large ones are read again only if they have changed since."""
    try:
        content = (folder / MANIFEST).read_bytes()
        sums: dict[str, str] = json.loads(content)["sha256"]
        paths = [folder / name for name in sums]
        before, manifest = state_of(paths), [hashlib.sha256(content).hexdigest()]
        if read_kept(_checked(folder), before) == manifest:
            return True
        if any(sha256(path) != checksum for path, checksum in zip(paths, sums.values(), strict=True)):
            return False
        if sum(size for size, *_ in before) > LARGE and is_settled(paths, before):
            write_kept(_checked(folder), before, manifest)
    except (OSError, UserError, ValueError, LookupError, TypeError, AttributeError):
        return False
    return True


def _checked(folder: Path) -> Path:
    """Return the file beside the folder that says in what state its files were when they were last read."""
    return folder.with_suffix(".checked.json")
