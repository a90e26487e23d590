"""Static analysis of a package's modules: what each defines, and what its names are bound to. Nothing is imported."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ablab.syntax.scopes import LOCAL, Targets, bindings


@dataclass
class Module:
    """A parsed module.

    `names`: the dotted targets that its own names may be bound to. `definitions`: the statements that bind each name,
    except names that only an import binds. `effects`: statements that bind nothing.
    """

    name: str
    names: Mapping[str, Targets]
    definitions: Mapping[str, list[ast.stmt]]
    effects: list[ast.stmt] = field(default_factory=list)


class Package:
    """The modules below one folder, parsed on demand."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name
        self.module = cache(self._parse)

    def _parse(self, name: str) -> Module | None:
        """Parse a module; None if the package has no such module."""
        path = self.folder.joinpath(*name.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name.partition(".")[0] != self.name or not path.is_file():
            return None
        tree = ast.parse(path.read_bytes())
        names = bindings(tree.body)
        definitions: dict[str, list[ast.stmt]] = {}
        effects = []
        for statement in tree.body:
            bound = bindings([statement])
            for each in bound:
                if LOCAL in names[each] or len(names[each]) > 1:
                    definitions.setdefault(each, []).append(statement)
            if not bound and _acts(statement):
                effects.append(statement)
        dotted = {each: tuple(target or f"{name}.{each}" for target in targets) for each, targets in names.items()}
        return Module(name, dotted, definitions, effects)

    def owner(self, dotted: str) -> tuple[Module, str, list[str]] | None:
        """Return the module that defines a dotted name, the name in that module, and the attributes that follow.

        An empty name stands for the module itself. None if the name is not in the package; LookupError if it should be.
        """
        if dotted.partition(".")[0] != self.name:
            return None
        parts = dotted.split(".")
        size = next(size for size in range(len(parts), 0, -1) if self.module(".".join(parts[:size])) is not None)
        module = self.module(".".join(parts[:size]))
        assert module is not None
        if size == len(parts):
            return module, "", []
        name, *attributes = parts[size:]
        if name in module.definitions:
            return module, name, attributes
        if name in module.names:
            return self.owner(".".join([*module.names[name], *attributes]))
        if name.startswith("__"):
            return module, "", [name, *attributes]
        raise LookupError(f"{module.name} has no {name}")


def _acts(statement: ast.stmt) -> bool:
    """Return whether a module's statement does something when the module is imported."""
    if isinstance(statement, ast.If) and _names_in(statement.test) & {"__name__", "TYPE_CHECKING"}:
        return False
    return not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


def _names_in(expression: ast.expr) -> set[str]:
    return set(_identifiers(expression))


def _identifiers(expression: ast.expr) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
