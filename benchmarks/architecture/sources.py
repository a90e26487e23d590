"""The package read from its sources: modules, definitions and imports. Nothing of it is imported."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.architecture.levels import LEVELS, WINGS

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"


class StaleNameError(Exception):
    """A name in this file that the sources no longer have."""


class Definition(NamedTuple):
    """A class, a function or a variable. `docstring`: None where it has none."""

    path: Path
    docstring: str | None


@cache
def modules() -> Mapping[str, Path]:
    """Every module under src/ by its dotted name."""
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def definitions() -> Mapping[str, Definition]:
    """Every definition under src/ by its dotted name, methods included, names inside functions not."""
    return {
        name: found for module, path in modules().items() for name, found in _defined(module, path, tree(path).body)
    }


def _defined(prefix: str, path: Path, body: Sequence[ast.stmt]) -> Iterator[tuple[str, Definition]]:
    for number, statement in enumerate(body):
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}.{statement.name}"
            yield name, Definition(path, ast.get_docstring(statement))
            if isinstance(statement, ast.ClassDef):
                yield from _defined(name, path, statement.body)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield f"{prefix}.{target.id}", Definition(path, _string(body[number + 1 : number + 2]))


def _string(statements: Sequence[ast.stmt]) -> str | None:
    match statements:
        case [ast.Expr(value=ast.Constant(value=str(text)))]:
            return text
    return None


def definition(name: str) -> Definition:
    """Where a name is defined; StaleNameError where it is not."""
    found = definitions().get(name)
    if found is None:
        last = name.rpartition(".")[2]
        likely = [other for other in definitions() if other.rpartition(".")[2] == last] or list(definitions())
        nearest = ", ".join(get_close_matches(name, likely, n=3))
        raise StaleNameError(f"the sources have no {name}{nearest and f'; nearest: {nearest}'}")
    return found


def package(module: str) -> str:
    """Return the room of a module: its package or top-level module of `ablab`, in a wing as in `transformer.model`."""
    parts = module.split(".")
    return ".".join(parts[1:3] if parts[1:2] and parts[1] in WINGS else parts[1:2]) or module


def of_package(name: str) -> dict[str, Path]:
    """Return the modules of a room."""
    return {
        module: path
        for module, path in modules().items()
        if module.split(".")[0] == "ablab" and package(module) == name
    }


@cache
def imports_of(module: str, *, inside_functions: bool = True) -> set[str]:
    """Return the modules of the package that one imports, anywhere or at module level alone."""

    def walk(node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for child in ast.iter_child_nodes(node):
            if inside_functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from walk(child)

    return {target for node in walk(tree(modules()[module])) for target in _targets(node)}


def _targets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "ablab")
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        if node.module is None or node.module.split(".")[0] != "ablab":
            return
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in modules() else node.module


def imports() -> dict[str, set[str]]:
    """Return, by package or top-level module, those that it imports, inside functions too."""
    found: dict[str, set[str]] = {}
    for name in (name for level in LEVELS for name in level):
        found[name] = {package(target) for module in of_package(name) for target in imports_of(module)} - {name}
    return found


def reduced(edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Without the edges that a longer path implies."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            new = edges[ahead.pop()] - seen
            seen |= new
            ahead += new
        return seen

    beyond = {name: reached(name) for name in edges}
    return {
        name: {target for target in targets if not any(target in beyond[other] for other in targets - {target})}
        for name, targets in edges.items()
    }


def first_sentence(docstring: str | None) -> str:
    """On one line, with a full stop; empty where there is no docstring."""
    if not docstring:
        return ""
    paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?])(?<!\bal\.)(?<!e\.g\.)(?<!i\.e\.)\s+(?=[A-Z`*])", paragraph, maxsplit=1)[0]
    return sentence if sentence[-1] in ".!?" else f"{sentence}."
