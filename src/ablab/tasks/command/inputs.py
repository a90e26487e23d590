"""The inputs of a command: files, folders and patterns whose content is part of what a run is."""

import ast
import os
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from shutil import which

from ablab.errors import UserError
from ablab.files import json_digest, sha256

DIGITS = 12
SKIPPED = ("__pycache__", ".git")
TOLD = ("python", "pypy", "ruby", "perl", "node", "Rscript", "julia", "java", "php", "lua")
"""Beginnings of names of interpreters that tell their version."""


def digests_of(inputs: Sequence[str], store: Path) -> dict[str, str]:
    """Return a digest by input; UserError for one that is not there. Names are relative to the working folder.

    What runs leave in their store is no input, though a folder that is one may hold the store.
    """
    return {name: _digest(name, store.resolve()) for name in inputs}


def _digest(name: str, store: Path) -> str:
    files = sorted(path for path in _files(name) if store not in path.resolve().parents)
    if not files:
        raise UserError(f"inputs: {name}: there is no such file, nor a folder or pattern with one")
    content = {str(path): _of_file(path) for path in files}
    whole = next(iter(content.values())) if Path(name).is_file() else json_digest(content, DIGITS)
    return whole[:DIGITS]


def _files(name: str) -> Iterator[Path]:
    """Yield the files that an input names."""
    path = Path(name)
    found = [path] if path.exists() else Path().glob(name) if not path.is_absolute() else []
    for each in found:
        if each.is_dir():
            yield from (one for one in each.rglob("*") if one.is_file() and not set(one.parts) & set(SKIPPED))
        elif each.is_file():
            yield each


def _of_file(path: Path) -> str:
    try:
        stat = path.stat()
        return _kept(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)
    except OSError as error:
        raise UserError(f"inputs: {path}: cannot be read ({error.strerror})") from None


@cache
def _kept(path: Path, size: int, modified: int, inode: int) -> str:
    """Digest a file once for as long as it stays as it is: the arms of a study share their inputs."""
    return sha256(path)


def program(word: str) -> str:
    """Return the path of a program; UserError where there is none."""
    found = which(word)
    if found is None:
        raise UserError(f"command: {word}: no such program; allowed: one on the PATH, or a path")
    return found


@cache
def version_of(path: str) -> str | None:
    """Return what an interpreter says of its version; None for any other program."""
    if not Path(path).name.startswith(TOLD):
        return None
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None


def undeclared(command: Sequence[str], inputs: Sequence[str]) -> list[str]:
    """Return Python files below the working folder that the command's scripts read or import, and no input covers."""
    covered = {os.path.realpath(path) for name in inputs for path in _files(name)}
    waiting = [Path(word) for word in command if word.endswith(".py") and Path(word).is_file()]
    seen: dict[str, str] = {}
    while waiting:
        path = waiting.pop()
        real = os.path.realpath(path)
        if real in seen or not real.startswith(os.path.realpath(".") + os.sep):
            continue
        seen[real] = os.path.relpath(real)
        waiting += _imported(path)
    return sorted(shown for real, shown in seen.items() if real not in covered)


def _imported(path: Path) -> Iterator[Path]:
    """Yield the files beside a script, or in packages there, that it imports."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        else:
            continue
        for name in names:
            place = Path(*path.parent.parts, *name.split("."))
            yield from (one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file())
