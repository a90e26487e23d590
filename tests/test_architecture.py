"""Imports point one way, and what plans or reports never loads the heavy libraries."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ablab

PACKAGE = Path(ablab.__file__).parent

STOREYS = (
    ("ablab",),
    (
        "errors",
        "fields",
        "files",
        "lines",
        "seeding",
        "provenance",
        "threads",
        "statistics",
    ),
    ("model",),
    ("data",),
    ("config",),
    ("identity", "store", "scoring"),
    ("console", "plan"),
    ("tracking",),
    ("search",),
    ("analysis", "pruning"),
    ("decoding",),
    ("training",),
    ("build",),
    ("export",),
    ("stages",),
    ("run",),
    ("launchers",),
    ("study",),
    ("report",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
"""Each room imports from its own storey and from those above it in this list, wherever the import stands."""

NEVER = [
    *(("statistics", room) for room in ("errors", "config", "store", "scoring", "study", "files")),
    ("model", "training"),
    ("data", "training"),
    ("model", "decoding"),
    ("decoding", "training"),
    ("training", "build"),
    ("training", "run"),
    ("training", "stages"),
    ("model", "config"),
    ("data", "config"),
    ("decoding", "config"),
    ("training", "config"),
]
"""Said apart from the order, since these are the promises people rely on. Config stops at the door (build)."""

LIGHT = (
    *("errors", "fields", "files", "lines", "seeding", "config", "identity", "plan", "store"),
    *("provenance", "tracking", "console", "scoring", "run", "launchers", "search", "study", "statistics", "report"),
    *("commands", "cli"),
)
"""What plans, says or reports loads none of the heavy libraries."""

LIGHT_DATA = {f"ablab.data.{name}" for name in ("corpora", "corpus", "text", "numbers", "multi30k", "mtdata")}

PRELOADED = "ablab.tracking.wandb_preload"
"""It is there to import wandb, for whoever forks many runs."""


def _modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _targets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "ablab")
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        if node.module and node.module.split(".")[0] == "ablab":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


def _imports(name: str, *, inside_functions: bool) -> set[str]:
    """The package's modules that one imports, at module level alone or anywhere."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))

    def walk(node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for child in ast.iter_child_nodes(node):
            if inside_functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from walk(child)

    return {target for node in walk(tree) for target in _targets(node)}


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else "ablab"


STOREY = {room: number for number, rooms in enumerate(STOREYS) for room in rooms}


def test_every_room_has_its_storey():
    assert {_room(name) for name in MODULES} == set(STOREY)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_point_one_way(name):
    for target in _imports(name, inside_functions=True):
        assert STOREY[_room(target)] <= STOREY[_room(name)], f"{name} imports {target}"


@pytest.mark.parametrize(("room", "other"), NEVER)
def test_what_must_never_import_the_other(room, other):
    for name in MODULES:
        if _room(name) == room:
            assert other not in {_room(target) for target in _imports(name, inside_functions=True)}, name


def test_nobody_imports_the_command_line():
    for name in set(MODULES) - {"ablab.__main__"}:
        assert "ablab.cli" not in _imports(name, inside_functions=True), name


def test_no_module_waits_for_itself():
    """No cycle among imports at module level."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"cycle: {' -> '.join((*path, name))}"
        if name in done:
            return
        for target in _imports(name, inside_functions=False):
            visit(target, (*path, name))
        done.add(name)

    for name in MODULES:
        visit(name, ())


def test_data_takes_only_the_special_tokens_from_the_model():
    for name in MODULES:
        if _room(name) == "data":
            of_model = {t for t in _imports(name, inside_functions=True) if _room(t) == "model"}
            assert of_model <= {"ablab.model.tokens"}, name


def test_the_light_rooms_load_neither_torch_nor_lightning():
    names = sorted(LIGHT_DATA | {name for name in MODULES if _room(name) in LIGHT} - {PRELOADED})
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}:\n"
        "    importlib.import_module(name)\n"
        "    heavy = {'torch', 'pytorch_lightning', 'wandb', 'matplotlib'} & set(sys.modules)\n"
        "    assert not heavy, (name, heavy)\n"
    )
    environment = {"PYTHONPATH": str(PACKAGE.parent), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
