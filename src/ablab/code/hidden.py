"""What the source of a part hides: files that it reads, and code that it runs, without naming them."""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ablab.code.definitions import Definition, Key, Sources
from ablab.code.modules import Module, Package
from ablab.code.scopes import dotted_name, executed, imported, is_within

RUNS = (
    *("importlib.import_module", "importlib.reload", "importlib.util", "importlib.machinery", "builtins.__import__"),
    *("ctypes.CDLL", "ctypes.cdll", "torch.ops.load_library", "torch.utils.cpp_extension"),
    *("runpy", "imp", "pkgutil", "builtins.exec", "builtins.eval", "builtins.compile", "builtins.__loader__"),
)
"""What runs code that the source does not name."""

METHODS = ("read_text", "read_bytes", "open")
"""What reads the file that the value before it names: `PATH.open()`, or `pathlib.Path.open(PATH)`."""

OPENS = (
    *("builtins.open", "io.open", "io.FileIO", "os.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open"),
    *("zipfile.ZipFile", "tarfile.open", "linecache", "fileinput.input", *(f"pathlib.Path.{name}" for name in METHODS)),
    *("numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile", "numpy.memmap", "numpy.fromregex"),
    *("torch.load", "torch.from_file", "torch.jit.load", "safetensors", "joblib.load"),
    *("pandas.read_csv", "pandas.read_json", "pandas.read_parquet", "pandas.read_table", "pandas.read_pickle"),
)
"""What reads the file that its first argument names."""

READS = (
    *("os.fdopen", "os.popen", "os.system", "subprocess", "zipfile", "tarfile", "mmap", "fileinput", "shelve"),
    *("sqlite3", "dbm", "importlib.resources", "importlib_resources", ".__file__", "torch.hub"),
    *("inspect.getsource", "inspect.getsourcelines", "inspect.getsourcefile", "inspect.getfile", "inspect.getcomments"),
    *("urllib.request", "requests", "huggingface_hub"),
)
"""What else reads a file, or other text from outside. What begins with a dot is an attribute of whatever has it."""

STEPS, STAYS = ("with_name", "with_suffix", "joinpath"), ("resolve", "absolute")
"""Methods of a path that lead to another one, and those that lead to the same file."""


@dataclass(frozen=True)
class Hidden:
    """One use of what the source does not hold, in words. `path`: that of the file, where the source tells it."""

    module: str
    line: int
    words: str
    is_code: bool = False
    path: Path | None = None


def hidden(
    package: Package, definitions: Mapping[Key, Definition], beside: Path, files: Collection[Path], *, reads: bool
) -> Iterator[Hidden]:
    """Yield what these definitions hide, except reads of the `files` that the part names.

    `beside`: the folder from which it names them. `reads`: whether to yield reads at all.
    """
    named = {file.resolve() for file in files}
    sources, known = Sources(package), _Known({}, {})
    for key, definition in definitions.items():
        module = package.module(key.module)
        assert module is not None
        written = _Written(package, module, sources.statements(key), known)
        found = [*written.uses(definition.others, reads=reads), *(written.places() if reads else ())]
        left = (each for each in found if each.path is None or not _is_named(each.path, beside, named))
        yield from sorted(left, key=lambda each: each.line)


def _is_named(path: Path, beside: Path, named: Collection[Path]) -> bool:
    """Return whether a path leads to a named file, and not to one of the same name in the current folder."""
    there, here = (beside / path).resolve(), path.resolve()
    return there in named and (here == there or not here.exists())


class _Told(NamedTuple):
    """A path that the source writes out. `is_own`: it begins at `__file__`."""

    path: Path
    is_own: bool


class _Known(NamedTuple):
    """What was found out before. `paths`: of constants; `rebound`: by module, the names that its functions bind."""

    paths: dict[str, _Told | None]
    rebound: dict[str, set[str]]


class _Written:
    """The statements of a definition, and the paths that they write out."""

    def __init__(self, package: Package, module: Module, statements: Sequence[ast.stmt], known: _Known) -> None:
        self.package, self.module, self.statements, self.known = package, module, statements, known

    def uses(self, others: Mapping[str, Sequence[ast.AST]], *, reads: bool) -> Iterator[Hidden]:
        """Yield each use of what runs other code, or reads, with the path that it is handed."""
        for name, nodes in others.items():
            words = name.removeprefix("builtins").removeprefix(".")
            for node in nodes:
                line = getattr(node, "lineno", 0)
                if is_within(name, RUNS):
                    yield Hidden(self.module.name, line, f"{words} runs code that this source does not name", True)
                elif reads and is_within(name, (*(f".{each}" for each in METHODS), *OPENS, *READS)):
                    yield self._read(words, line, self._handed(name, node))

    def places(self) -> Iterator[Hidden]:
        """Yield each path that begins at `__file__`, whatever becomes of it.

        Of a constant of the module that is such a path, each use is looked at instead.
        """
        for statement in () if self.constant is not None else self.statements:
            for node, path in self._own_paths(statement):
                yield self._read("__file__", node.lineno, path)

    def _read(self, words: str, line: int, path: Path | None) -> Hidden:
        if path is None or path.is_dir():
            return Hidden(self.module.name, line, f"{words} reads what this source does not hold")
        file = self.package.file_of(self.module.name)
        is_near = file is not None and path.is_relative_to(file.absolute().parent)
        shown = path.relative_to(file.absolute().parent) if file is not None and is_near else path
        return Hidden(self.module.name, line, f"{words} reads {shown.as_posix()}", path=path)

    def _own_paths(self, node: ast.AST) -> Iterator[tuple[ast.expr, Path]]:
        if isinstance(node, ast.expr) and (told := self._told(node)) is not None:
            if told.is_own:
                yield node, told.path
            return
        for child in executed(node, deep=False):
            yield from self._own_paths(child)

    def _handed(self, name: str, node: ast.AST) -> Path | None:
        """Return the path that a call reads, if the source writes it out."""
        call = self._calls.get(node)
        if call is None:
            return None
        if name.startswith("."):
            told = self._told(node.value) if isinstance(node, ast.Attribute) and node.attr == name[1:] else None
        else:
            told = self._told(call.args[0]) if is_within(name, OPENS) and call.args else None
        return None if told is None else told.path

    @cached_property
    def _calls(self) -> dict[ast.AST, ast.Call]:
        """The calls in these statements, by what they call."""
        return {node.func: node for each in self.statements for node in ast.walk(each) if isinstance(node, ast.Call)}

    @cached_property
    def _bound(self) -> set[str]:
        """Every name that is bound here by anything but an import."""
        nodes = [node for each in self.statements for node in ast.walk(each)]
        stored = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        return stored | {node.arg for node in nodes if isinstance(node, ast.arg)}

    @cached_property
    def _imported(self) -> dict[str, str]:
        """What imports in these statements bind."""
        nodes = [node for each in self.statements for node in ast.walk(each)]
        imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        return {name: target for node in imports for name, target in imported(node)}

    def _dotted(self, node: ast.expr) -> str:
        """Return what a chain of names is for sure; empty if it may be several things."""
        first, _, rest = dotted_name(node).partition(".")
        targets = {*self.module.names.get(first, ()), *filter(None, [self._imported.get(first)])}
        return "" if first in self._bound or len(targets) != 1 else ".".join(filter(None, [*targets, rest]))

    def _told(self, node: ast.expr) -> _Told | None:
        """Return the path that an expression is, if names, texts and steps from path to path are all it is made of."""
        if isinstance(node, ast.Constant):
            return _Told(Path(node.value), False) if isinstance(node.value, str) else None
        if isinstance(node, ast.Name) and node.id == "__file__" and node.id not in self.module.names:
            file = self.package.file_of(self.module.name)
            return None if file is None or node.id in self._bound else _Told(file.absolute(), True)
        if isinstance(node, (ast.Name, ast.Attribute)) and (told := self._of_constant(self._dotted(node))) is not None:
            return told
        if isinstance(node, ast.Attribute):
            told = self._told(node.value) if node.attr == "parent" else None
            return None if told is None else _Told(told.path.parent, told.is_own)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self._joined([node.left, node.right])
        return self._called(node) if isinstance(node, ast.Call) and not node.keywords else None

    def _called(self, call: ast.Call) -> _Told | None:
        if self._dotted(call.func) == "pathlib.Path":
            return self._joined(call.args)
        if not isinstance(call.func, ast.Attribute) or (start := self._told(call.func.value)) is None:
            return None
        if call.func.attr in STAYS and not call.args:
            return _Told(getattr(start.path, call.func.attr)(), start.is_own)
        step = self._joined(call.args) if call.func.attr in STEPS else None
        try:
            return None if step is None else _Told(getattr(start.path, call.func.attr)(str(step.path)), start.is_own)
        except ValueError:  # it is no name
            return None

    def _joined(self, nodes: Sequence[ast.expr]) -> _Told | None:
        told = [self._told(each) for each in nodes]
        known = [each for each in told if each is not None]
        if not told or len(known) < len(told):
            return None
        return _Told(Path(*(each.path for each in known)), any(each.is_own for each in known))

    def _of_constant(self, dotted: str) -> _Told | None:
        """Return the path that a constant of a module is."""
        known = self.known.paths
        if dotted not in known:
            known[dotted] = None  # of one that leads to itself
            owner = self.package.owner(dotted) if dotted else None
            if owner is not None and owner[1] and not owner[2]:
                statements = owner[0].definitions.get(owner[1], ())
                known[dotted] = _Written(self.package, owner[0], statements, self.known).constant
        return known[dotted]

    @cached_property
    def constant(self) -> _Told | None:
        """The path that a name of the module is bound to, if these statements bind it, once and for all."""
        if len(self.statements) != 1 or not isinstance(self.statements[0], (ast.Assign, ast.AnnAssign)):
            return None
        statement = self.statements[0]
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        target, value = targets[0], statement.value
        if len(targets) != 1 or not isinstance(target, ast.Name) or value is None:
            return None
        told = self._told(value)
        if told is None or len(self.module.names[target.id]) != 1:
            return None
        return None if target.id in self._rebound() else told

    def _rebound(self) -> set[str]:
        """Return the names of the module that its functions bind, as `global`."""
        known, module = self.known.rebound, self.module
        if module.name not in known:
            every = [*module.effects, *(one for each in module.definitions.values() for one in each)]
            nodes = (node for each in every for node in ast.walk(each) if isinstance(node, ast.Global))
            known[module.name] = {name for node in nodes for name in node.names}
        return known[module.name]


def may_hide(module: str) -> bool:
    """Return whether a star import of a library's module may bring what reads files, or runs code."""
    return any(name.startswith(f"{module}.") for name in (*RUNS, *OPENS, *READS))
