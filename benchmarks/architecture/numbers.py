"""Numbers of the house: how many files and arrows it has, and how far one reads. A test holds each to its limit."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from benchmarks.architecture.names import RUN
from benchmarks.architecture.sources import SOURCES, definition, imports_of, modules, package, tree

STUB = 12
"""Most lines of a file that does not count: an `__init__.py`, as a rule."""

SCORE = re.compile(r"(?<!sacre)bleu|chrf", re.IGNORECASE)
"""Names of scores; sacreBLEU is the name of a library."""

LIMITS: Mapping[str, int] = {
    "files over 12 lines": 376,
    "lines": 64_836,
    "entries at the top": 24,
    "arrows between rooms": 217,
    "floors": 11,
    "files that name a score": 14,
    "modules with one importer": 58,
    "class names used twice": 0,
    "files from the command line to the record": 22,
}
"""The most that each number may be. A change that lowers one lowers its limit, too."""


def numbers() -> dict[str, int]:
    """Count everything that has a limit, in the order of the limits."""
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules().items()}
    arrows = rooms()
    return {
        "files over 12 lines": sum(count > STUB for name, count in lines.items() if _is_own(name)),
        "lines": sum(lines.values()),
        "entries at the top": len(_entries()),
        "arrows between rooms": sum(map(len, arrows.values())),
        "floors": max(floor for room, floor in floors(arrows).items() if room not in _stubs(lines)),
        "files that name a score": sum(names_a_score(name) for name in modules() if _is_own(name)),
        "modules with one importer": sum(count == 1 for name, count in _importers().items() if _is_own(name)),
        "class names used twice": sum(count > 1 for count in _classes().values()),
        "files from the command line to the record": len({definition(name).path for name in _of_a_run()}),
    }


def _stubs(lines: Mapping[str, int]) -> set[str]:
    """Return the modules that are no room: those of a few lines, and `ablab.__main__`, which calls the command line."""
    return {package("ablab.__main__")} | {
        package(name) for name, count in lines.items() if count <= STUB and package(name) == name.rpartition(".")[2]
    }


def _is_own(module: str) -> bool:
    return module.split(".")[0] == "ablab"


def _entries() -> list[str]:
    return list(
        {path.relative_to(SOURCES / "ablab").parts[0] for path in (SOURCES / "ablab").rglob("*.*") if _is_source(path)}
    )


def _is_source(path: Path) -> bool:
    """Return whether a file is not what Python left, as it does in folders of packages that are gone."""
    return path.is_file() and path.parent.name != "__pycache__"


def rooms() -> dict[str, set[str]]:
    """Return, by room, those that it imports; the plug-ins for Hydra are one."""
    found: dict[str, set[str]] = {}
    for name in modules():
        room = package(name) if _is_own(name) else name.split(".")[0]
        found.setdefault(room, set()).update(package(target) for target in imports_of(name))
    return {room: targets - {room} for room, targets in found.items()}


def floors(arrows: Mapping[str, set[str]]) -> dict[str, int]:
    """Return the floor of each room: 1 if it imports nothing, else one above the highest that it imports.

    Rooms that import each other share a floor.
    """

    @cache
    def reached(room: str) -> frozenset[str]:
        seen: set[str] = set()
        ahead = [room]
        while ahead:
            new = arrows[ahead.pop()] - seen
            seen |= new
            ahead += new
        return frozenset(seen)

    @cache
    def floor(room: str) -> int:
        circle = {room, *(other for other in reached(room) if room in reached(other))}
        below = {target for member in circle for target in arrows[member]} - circle
        return 1 + max(map(floor, below), default=0)

    return {room: floor(room) for room in arrows}


def names_a_score(module: str) -> bool:
    """Return whether the code of a module names BLEU or chrF; docstrings and comments may."""
    names = tree(modules()[module])
    spoken = {id(node.value) for node in ast.walk(names) if isinstance(node, ast.Expr)}
    return any(
        SCORE.search(word) for node in ast.walk(names) if id(node) not in spoken for word in _words(node) if word
    )


def _words(node: ast.AST) -> Iterator[str]:
    for name in ("id", "attr", "arg", "name", "module", "value"):
        if isinstance(word := getattr(node, name, None), str):
            yield word


def _importers() -> Counter[str]:
    return Counter(target for name in modules() for target in imports_of(name) if target != name)


def _classes() -> Counter[str]:
    return Counter(
        node.name for path in modules().values() for node in tree(path).body if isinstance(node, ast.ClassDef)
    )


def _of_a_run() -> Iterator[str]:
    for step in RUN:
        yield step.name
        yield from (inner.name for inner in step.inner)


def table() -> str:
    """Return the numbers beside their limits, as text."""
    rows = [(name, f"{count:,}", f"{LIMITS[name]:,}") for name, count in numbers().items()]
    return "\n".join(f"{name:<44}{count:>8}{limit:>8}" for name, count, limit in (("", "now", "limit"), *rows))
