"""Imports point one way, and what plans or reports never loads the heavy libraries."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import ablab
from benchmarks.architecture.levels import LEVELS, LIGHT
from benchmarks.architecture.sources import imports_of, modules, package, tree

PACKAGE = Path(ablab.__file__).parent


NEVER = [
    *(("statistics", package) for package in ("errors", "config", "store", "transformer.data", "study", "files")),
    ("transformer.model", "transformer.training"),
    ("transformer.data", "transformer.training"),
    ("transformer.model", "transformer.decoding"),
    ("transformer.decoding", "transformer.training"),
    ("transformer.training", "run"),
    ("transformer.training", "transformer.stages"),
    ("transformer.model", "config"),
    ("transformer.data", "config"),
    ("transformer.decoding", "config"),
    ("transformer.training", "config"),
]
"""Said apart from the order, since these are the promises people rely on. Config stops at the door (stages)."""


LIGHT_MODULES = {
    *(f"ablab.transformer.data.{name}" for name in ("corpus", "text", "numbers", "multi30k", "mtdata", "scoring")),
    *(f"ablab.transformer.data.documents.{name}" for name in ("texts", "own_files", "huggingface", "encoding")),
    "ablab.transformer.data.documents.tokenizers",
    *(
        f"ablab.transformer.language_model.{name}"
        for name in ("task", "schema", "analyses", "scores", "verbs.generate")
    ),
    *(f"ablab.transformer.translation.{name}" for name in ("task", "analyses", "verbs.options")),
    *(f"ablab.transformer.translation.verbs.{name}" for name in ("analyse", "check", "export", "prune", "translate")),
}
"""Of rooms that are not light, those modules that plan, say or list."""

HEAVY = {"ablab.report.dashboard.send"}
"""It speaks to W&B in its own objects; only the verb `dashboard` imports it."""

MODULES = {name: path for name, path in modules().items() if name.split(".")[0] == "ablab"}
STOREY = {name: number for number, names in enumerate(LEVELS) for name in names}


def test_every_package_has_its_level():
    assert {package(name) for name in MODULES} == set(STOREY)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_point_one_way(name):
    for target in imports_of(name):
        assert STOREY[package(target)] <= STOREY[package(name)], f"{name} imports {target}"


@pytest.mark.parametrize(("one", "other"), NEVER)
def test_what_must_never_import_the_other(one, other):
    for name in MODULES:
        if package(name) == one:
            assert other not in {package(target) for target in imports_of(name)}, name


def test_nobody_imports_the_command_line():
    for name in set(MODULES) - {"ablab.__main__"}:
        assert "ablab.commands.cli" not in imports_of(name), name


def test_no_module_waits_for_itself():
    """No cycle among imports at module level."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"cycle: {' -> '.join((*path, name))}"
        if name in done:
            return
        for target in imports_of(name, inside_functions=False):
            visit(target, (*path, name))
        done.add(name)

    for name in MODULES:
        visit(name, ())


def test_data_takes_only_the_special_tokens_from_the_model():
    for name in MODULES:
        if package(name) == "transformer.data":
            of_model = {t for t in imports_of(name) if package(t) == "transformer.model"}
            assert of_model <= {"ablab.transformer.model.tokens"}, name


def test_the_light_rooms_load_neither_torch_nor_lightning():
    names = sorted(LIGHT_MODULES | {name for name in MODULES if package(name) in LIGHT} - HEAVY)
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


def test_a_class_has_a_name_of_its_own():
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in MODULES.values())
    counts = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, count in counts.items() if count > 1] == []


WING = "ablab.transformer."
LIBRARIES = {"torch", "pytorch_lightning", "sentencepiece", "sacrebleu"}


def _libraries(name: str) -> set[str]:
    """Those that a module imports, anywhere."""
    nodes = list(ast.walk(tree(MODULES[name])))
    named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {each.split(".")[0] for each in named} & LIBRARIES


@pytest.mark.parametrize("name", sorted(name for name in MODULES if not f"{name}.".startswith(WING)))
def test_outside_the_transformer_nothing_imports_its_libraries(name):
    assert not _libraries(name)


def test_outside_the_transformer_nothing_imports_it():
    outside = {name for name in MODULES if not f"{name}.".startswith(WING)}
    knowing = {name for name in outside if any(f"{each}.".startswith(WING) for each in imports_of(name))}
    assert knowing == set()


@pytest.mark.parametrize("name", sorted(name for name in MODULES if name.startswith(WING)))
def test_the_transformer_knows_no_study(name):
    assert not {package(target) for target in imports_of(name)} & {"study", "judge", "sweep", "report"}
