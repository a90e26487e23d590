"""Static analysis of a package's modules: what each defines, and what its names are bound to. Nothing is imported."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from ablab.code.acts import acts, is_guard, order_of
from ablab.code.scopes import LOCAL, Targets, bindings, dotted_name

IMPORTS = (ast.Import, ast.ImportFrom)
ABSTRACT = ("ABCMeta", "abc.ABCMeta")
RELATIVE = re.compile(rb"\bfrom[\s\\]*\.")


@dataclass
class Module:
    """A parsed module.

    `names`: the dotted targets that its own names may be bound to. `definitions`: the statements that bind each name,
    except names that only an import binds. `effects`: statements that bind nothing. `bound`: as `names`, of `body`.
    """

    name: str
    names: Mapping[str, Targets]
    definitions: Mapping[str, list[ast.stmt]]
    effects: list[ast.stmt]
    body: Sequence[ast.stmt]
    bound: Mapping[str, Targets]

    @cached_property
    def acting(self) -> list[str]:
        """The definitions that do more than define when the module is imported."""
        return sorted(name for name, each in self.definitions.items() if any(acts(one, self.bound) for one in each))

    @cached_property
    def enters_subclasses(self) -> bool:
        """Whether a class here acts as others derive from it: it may enter them into a registry."""
        classes = (node for each in self.body for node in ast.walk(each) if isinstance(node, ast.ClassDef))
        return any(
            any(isinstance(one, ast.FunctionDef) and one.name == "__init_subclass__" for one in each.body)
            or any(of.arg == "metaclass" and dotted_name(of.value) not in ABSTRACT for of in each.keywords)
            for each in classes
        )

    @cached_property
    def order(self) -> list[str]:
        """What its statements bind whose order matters."""
        return order_of(self.body, self.bound)

    @cached_property
    def imports(self) -> list[str]:
        """The dotted names that the module, or a function of it, imports."""
        nodes = (node for statement in self.body for node in ast.walk(statement))
        return sorted({target for node in nodes if isinstance(node, IMPORTS) for target in _imported(node)})


class Package:
    """The modules of one package, parsed on demand. `folder`: the package's own.

    `strict`: a name that cannot be found is an error, not a name from elsewhere.
    """

    def __init__(self, folder: Path, *, strict: bool = True) -> None:
        self.folder, self.name, self.strict = folder, folder.name, strict
        self.module = cache(self._parse)
        self._contents: Mapping[Path, bytes] = {}

    def as_now(self) -> "Package":
        """Read all files, so that later edits are not seen, and return the package."""
        self._contents = {path: path.read_bytes() for path in self.folder.rglob("*.py")}
        return self

    def holds(self, dotted: str) -> bool:
        """Return whether the first part of a dotted name is one of these modules."""
        return dotted.partition(".")[0] == self.name

    def file_of(self, name: str) -> Path | None:
        """Return the file of a module; None if there is no such module."""
        if not self.holds(name):
            return None
        place = self._place(name.split("."))
        files = (place / "__init__.py", place.with_suffix(".py"))
        return next((file for file in files if file.is_file()), None)

    def _place(self, parts: Sequence[str]) -> Path:
        return self.folder.joinpath(*parts[1:])

    def _parse(self, name: str) -> Module | None:
        path = self.file_of(name)
        if path is None:
            return None
        content = self._contents[path] if path in self._contents else path.read_bytes()
        tree = ast.parse(content, str(path))
        if RELATIVE.search(content):
            _make_absolute(tree, name if path.name == "__init__.py" else name.rpartition(".")[0])
        names = bindings(tree.body)
        definitions: dict[str, list[ast.stmt]] = {}
        effects = []
        for statement in tree.body:
            bound = bindings([statement])
            for each in bound:
                if LOCAL in names[each] or len(names[each]) > 1:
                    definitions.setdefault(each, []).append(statement)
            if not bound and not _is_idle(statement, names):
                effects.append(statement)
        dotted = {each: tuple(target or f"{name}.{each}" for target in targets) for each, targets in names.items()}
        if not self.strict:  # which of several imports binds a name, its statements decide
            several = {each: targets for each, targets in names.items() if len(targets) > 1 and LOCAL not in targets}
            dotted |= {each: (*targets, f"{name}.{each}") for each, targets in several.items() if each != "*"}
        return Module(name, dotted, definitions, effects, tree.body, names)

    def imported_by(self, module: Module) -> list[Module]:
        """Return the modules of the package that run when this one is imported: itself, and all that they import.

        Of an installed package, itself alone: the version stands for the others, which may be thousands.
        """
        if {"site-packages", "dist-packages"} & set(self.folder.parts):
            return [module]
        found: dict[str, Module] = {}
        waiting = [module.name]
        while waiting:
            parts = waiting.pop().split(".")
            for size in range(1, len(parts) + 1):
                name = ".".join(parts[:size])
                if name not in found and (there := self.module(name)) is not None:
                    found[name] = there
                    waiting += there.imports
        return [found[name] for name in sorted(found)]

    def registered(self, module: Module) -> list[str]:
        """Return the definitions that a decorator of these modules takes, which may enter them into a registry."""
        decorated = (
            (name, each)
            for name, statements in module.definitions.items()
            for statement in statements
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef))
            for each in statement.decorator_list
        )
        return sorted({name for name, each in decorated if self._is_from_here(each, module)})

    def _is_from_here(self, decorator: ast.expr, module: Module) -> bool:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        first, _, rest = ast.unparse(function).partition(".")
        return any(
            owner is not None and bool(owner[1])
            for target in module.names.get(first, ())
            if (owner := self.owner(f"{target}.{rest}".rstrip("."))) is not None
        )

    def owner(self, dotted: str) -> tuple[Module, str, list[str]] | None:
        """Return the module that defines a dotted name, the name in that module, and the attributes that follow.

        An empty name stands for the module itself. None if the name is not in the package; LookupError if it should be.
        """
        try:
            return self._owner(dotted)
        except LookupError:
            if self.strict:
                raise
            return None

    def _owner(self, dotted: str) -> tuple[Module, str, list[str]] | None:
        if not self.holds(dotted):
            return None
        parts = dotted.split(".")
        there = (
            (module, size)
            for size in range(len(parts), 0, -1)
            if (module := self.module(".".join(parts[:size]))) is not None
        )
        module, size = next(there, (None, 0))
        if module is None:
            raise LookupError(f"there is no module {dotted}")
        if size == len(parts):
            return module, "", []
        name, *attributes = parts[size:]
        if name in module.definitions:
            return module, name, attributes
        bound = module.names.get(name) or self._by_star(module, name)[:1]
        if bound and (target := ".".join([*bound, *attributes])) != dotted:
            return self._owner(target)
        if not self.strict and "__getattr__" in module.definitions:  # PEP 562: it answers for every other name
            return module, "__getattr__", [name, *attributes]
        if name.startswith("__"):
            return module, "", [name, *attributes]
        raise LookupError(f"{module.name} has no {name}")

    def owners(self, dotted: str, known: frozenset[str] = frozenset()) -> Iterator[tuple[Module, str, list[str]]]:
        """Yield all that a dotted name may mean: what a package binds, its module of that name, star imports."""
        if not self.holds(dotted) or dotted in known:
            return
        parts = dotted.split(".")
        for size in range(len(parts), 0, -1):
            module = self.module(".".join(parts[:size]))
            if module is None:
                continue
            if size == len(parts):
                yield module, "", []
                continue
            name, *attributes = parts[size:]
            if name in module.definitions:
                yield module, name, attributes
            for target in (*module.names.get(name, ()), *self._by_star(module, name)):
                if (there := ".".join([target, *attributes])) != dotted:
                    yield from self.owners(there, known | {dotted})

    def _by_star(self, module: Module, name: str) -> Targets:
        """Return what star imports of modules here may bind a name to."""
        places = [star.removesuffix(".*") for star in module.names.get("*", ())]
        modules = [(place, self.module(place)) for place in places if self.holds(place)]
        return tuple(f"{place}.{name}" for place, there in modules if there is not None and name in there.names)


class Folder(Package):
    """The modules below one folder that is no package itself, such as that of a study: each file is a module.

    So is each file in a folder of it, with or without an `__init__.py`: Python imports both.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, strict=False)

    def holds(self, dotted: str) -> bool:
        """Return whether a dotted name begins with a module or package here, or lies below folders that lead to one."""
        place = self.folder
        for part in dotted.split("."):
            place /= part
            if place.with_suffix(".py").is_file() or (place / "__init__.py").is_file():
                return True
        return False

    def _place(self, parts: Sequence[str]) -> Path:
        return self.folder.joinpath(*parts)


class File(Folder):
    """A module of one file beside which others lie that are not its package's, as in site-packages."""

    def __init__(self, file: Path) -> None:
        super().__init__(file.parent)
        self.name = file.stem

    def holds(self, dotted: str) -> bool:
        return dotted.partition(".")[0] == self.name


def _make_absolute(tree: ast.Module, package: str) -> None:
    """Write relative imports out, given the package of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            node.module, node.level = ".".join([*above, *([node.module] if node.module else [])]), 0


def _is_idle(statement: ast.stmt, names: Mapping[str, Targets]) -> bool:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or is_guard(statement, names)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the dotted names of an import; a module's submodule cannot be told from its attribute."""
    for alias in node.names:
        yield alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
