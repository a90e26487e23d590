"""The inputs of a command: files, folders and patterns whose content is part of what a run is."""

import ast
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from shutil import which

from ablab.errors import UserError
from ablab.files import json_digest, sha256

DIGITS = 12
SKIPPED = ("__pycache__", ".git", ".ipynb_checkpoints")
LEFT_BEHIND = re.compile(r"\.DS_Store|Thumbs\.db|\._.*|\.#.*|#.*#|.*~|\..*\.sw[a-p]|\.nfs\w+")
"""Names of files that systems and editors leave in folders that they show."""
TOLD = ("python", "pypy", "ruby", "perl", "node", "Rscript", "julia", "java", "php", "lua")
"""Names of interpreters that tell their version, without the version that may follow, as in python3.11."""


def digests_of(inputs: Sequence[str], store: Path) -> dict[str, str]:
    """Return a digest by input; UserError for one that is not there. Names are relative to the working folder.

    What runs leave in their store is no input, though a folder that is one may hold the store, and one that is named
    may lie in it.
    """
    return {name: _digest(name, store.resolve()) for name in inputs}


def _digest(name: str, store: Path) -> str:
    if "\0" in name:
        raise UserError(f"inputs: {name!r}: no name of a file has a zero byte; allowed: files, folders and patterns")
    files = sorted(_files(name))
    if not _holds(str(store), os.path.realpath(name)):  # else the user names what lies in the store
        files = [path for path in files if store not in (path.parent.resolve() / path.name).parents]
    if not files:
        raise UserError(f"inputs: {name}: there is no such file, nor a folder or pattern with one")
    content = {str(path): _of_file(path) for path in files}
    whole = next(iter(content.values())) if Path(name).is_file() else json_digest(content, DIGITS)
    return whole[:DIGITS]


def _files(name: str) -> Iterator[Path]:
    """Yield the files that an input names."""
    path = Path(name)
    try:
        found = [path] if path.exists() else list(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    except ValueError as error:  # such as **x, or a zero byte
        raise UserError(f"inputs: {name!r}: no name of a file, nor a pattern ({error})") from None
    for each in found:
        if each.is_dir():
            yield from (one for one in _below(each) if one.is_file() and not _is_left_behind(one))
        elif each.is_file() and (each == path or not _is_left_behind(each)):
            yield each


def _is_left_behind(path: Path) -> bool:
    return bool(set(path.parts) & set(SKIPPED)) or LEFT_BEHIND.fullmatch(path.name) is not None


def _below(folder: Path, above: Sequence[str] = ()) -> Iterator[Path]:
    """Yield the files below a folder, also behind links to folders, but for links that lead back to where they lie.

    above: the real places of the folders on the way. What may not be read is left out, as the command cannot read it.
    """
    way = [*above, os.path.realpath(folder)]
    with suppress(OSError):
        for one in sorted(folder.iterdir()):
            if not one.is_dir():
                yield one
            elif not any(_holds(os.path.realpath(one), real) for real in way):
                yield from _below(one, way)


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


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
    if found is None and Path(word).is_file():
        raise UserError(f"command: {word}: may not be executed; allowed: chmod +x, or its interpreter before it")
    if found is None:
        raise UserError(f"command: {word}: no such program; allowed: one on the PATH, or a path")
    return found


@cache
def version_of(path: str) -> str | None:
    """Return what an interpreter says of its version; None for any other program."""
    if re.fullmatch(rf"({'|'.join(TOLD)})[\d.]*(\.exe)?", Path(path).name) is None:
        return None
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None


SCRIPTS = (".py", ".r", ".jl", ".sh", ".bash", ".zsh", ".rb", ".pl", ".lua", ".js", ".mjs", ".ts", ".ipynb", ".qmd")
"""Endings of what an interpreter reads."""


def undeclared(command: Sequence[str], inputs: Sequence[str]) -> list[str]:
    """Return the scripts that the command runs, and what they import below the working folder or beside them, as far
    as no input covers it.
    """
    covered = {os.path.realpath(path) for name in inputs for path in _files(name)}
    waiting = [*_scripts(command)]
    known = {os.path.realpath(folder) + os.sep for folder in (Path(), *(path.parent for path in waiting))}
    seen: dict[str, str] = {}
    while waiting:
        path = waiting.pop()
        real = os.path.realpath(path)
        if real in seen or not real.startswith(tuple(known)):
            continue
        seen[real] = os.path.relpath(real)
        waiting += _imported(path)
    return sorted(shown for real, shown in seen.items() if real not in covered)


def _scripts(command: Sequence[str]) -> Iterator[Path]:
    """Yield the words that are scripts, and the module after -m."""
    for before, word in zip(("", *command), command, strict=False):
        if before == "-m":
            module = Path(*word.split("."))
            packages = [parent / "__init__.py" for parent in (module, *module.parents)]
            files = (module.with_suffix(".py"), module / "__main__.py", *packages)
            yield from (one for one in files if one.is_file())
        elif _is_script(Path(word)):
            yield Path(word)


def _is_script(path: Path) -> bool:
    """Return whether a file is a script by its ending, or names its interpreter and lies beside none, as programs of
    packages do.
    """
    try:
        with path.open("rb") as file:
            named = file.read(2) == b"#!" and not (path.parent / "python").exists()
    except (OSError, ValueError):  # a folder, or no file at all
        return False
    return named or path.suffix.lower() in SCRIPTS


def _imported(path: Path) -> Iterator[Path]:
    """Yield the files beside a script or in the working folder, or in packages there, that it imports."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return
    for node in ast.walk(tree):
        folders = [path.parent, Path()]
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            of_module = [] if node.module is None else [node.module]
            names = [*of_module, *(".".join([*of_module, each.name]) for each in node.names)]
            if node.level:
                folders = [Path(os.path.normpath(path.parent.joinpath(*[".."] * (node.level - 1))))]
        else:
            continue
        within = {tuple(name.split(".")[:depth]) for name in names for depth in range(1, name.count(".") + 2)}
        if isinstance(node, ast.ImportFrom) and node.level:
            within.add(())  # the package itself
        for folder, parts in product(folders, sorted(within)):
            place = folder.joinpath(*parts)
            files = (*([place.with_suffix(".py")] if parts else []), place / "__init__.py")
            yield from (one for one in files if one.is_file())


ENGINES = ("docker", "podman", "nerdctl")
OF_FILES = ("apptainer", "singularity")
"""Programs whose images may be files."""

RUNNING = ("run", "exec", "shell")
AROUND_US = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
"""Variables by which a container tells the path of its image to what runs in it, and so to us."""

FLAGS = frozenset(
    {
        *("--rm", "--init", "--privileged", "--read-only", "--interactive", "--tty", "--detach", "--publish-all"),
        *("--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--quiet", "--replace", "--tls-verify"),
        *("--nv", "--nvccli", "--rocm", "--cleanenv", "--contain", "--containall", "--no-home", "--writable"),
        *("--writable-tmpfs", "--fakeroot", "--userns", "--no-privs", "--keep-privs", "--compat", "--no-init"),
        *("--no-eval", "--disable-cache", "--no-https", "--unsquash"),
    }
)
"""Options without a value."""

SHORT = {**dict.fromkeys(ENGINES, "itdPq"), **dict.fromkeys(OF_FILES, "eciCfupq")}
"""Options of one letter without a value, which may stand together."""

PINNED = re.compile(r"@sha256:[0-9a-f]{64}$")


def image_of(command: Sequence[str]) -> str | None:
    """Return the word of a command that names its image; None where it starts no container."""
    name = Path(command[0]).name
    if name not in SHORT:
        return None
    words = iter(command[1:])
    if not any(word in RUNNING for word in words):
        return None
    for word in words:
        if not word.startswith("-"):
            return word
        is_flag = word in FLAGS or re.fullmatch(f"-[{SHORT[name]}]+", word)
        if "=" not in word and not is_flag:
            next(words, None)  # its value
    return None


def image_files(
    command: Sequence[str], inputs: Sequence[str], environment: Mapping[str, str] = os.environ
) -> list[str]:
    """Return the files of images that decide what a command does, and are no inputs: its own, and the one around us."""
    own = image_of(command) if Path(command[0]).name in OF_FILES else None
    around = next((environment[name] for name in AROUND_US if environment.get(name)), None)
    named = [name for name in (own, around) if name is not None and Path(name).is_file()]
    declared = {os.path.realpath(name) for name in inputs}
    return list(dict.fromkeys(name for name in named if os.path.realpath(name) not in declared))


def unpinned(command: Sequence[str]) -> str | None:
    """Return the image of a command if its name may mean another image later; None if it may not."""
    image = image_of(command)
    return None if image is None or PINNED.search(image) or Path(image).exists() else image
