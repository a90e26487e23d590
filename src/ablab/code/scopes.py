"""Name resolution within a definition: which names are its own, and which come from its module."""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

LOCAL = ""
"""The target of a name that the definition binds itself."""

Targets = tuple[str, ...]
"""All possible targets of a name, in textual order: dotted names, and LOCAL."""

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BINDING = (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
LEAVES = (ast.Name, ast.Constant, ast.expr_context)
OWN_SCOPE = (*FUNCTIONS, ast.ClassDef, ast.Lambda, *COMPREHENSIONS)


class _Scope(NamedTuple):
    bound: Mapping[str, Targets]
    is_class: bool


class Scopes:
    """A stack of scopes that resolves names as Python does, from the innermost scope out to the module.

    A class body may read a name of the module before it binds its own, as in `act = staticmethod(act)`. `careful`: such
    a name has both as its targets.
    """

    def __init__(self, names: Mapping[str, Targets], *, careful: bool = False) -> None:
        self._names, self._careful = names, careful
        self._stack: list[_Scope] = []

    @property
    def in_class(self) -> bool:
        """True if the innermost scope is the body of a class."""
        return bool(self._stack) and self._stack[-1].is_class

    @contextmanager
    def entered(self, nodes: Sequence[ast.AST], *, bound: Sequence[str] = (), is_class: bool = False) -> Iterator[None]:
        """Enter a scope that binds the names bound by `nodes`, and the names `bound`."""
        names = {**dict.fromkeys(bound, (LOCAL,)), **bindings(nodes)}
        self._stack.append(_Scope(names, is_class))
        try:
            yield
        finally:
            self._stack.pop()

    def targets(self, name: str) -> Targets:
        """Return the possible targets of a name; a builtin name is LOCAL."""
        found = self._bound(name) or self._names.get(name, (LOCAL,))
        if self._careful and self.in_class and name in self._stack[-1].bound:
            around = self._bound(name, self._stack[:-1]) or self._names.get(name, ())
            return tuple(dict.fromkeys((*found, *around)))
        return found

    def binds(self, name: str) -> bool:
        """Return whether the innermost scope binds a name itself, which `global` and `nonlocal` deny."""
        return not self._stack or name in self._stack[-1].bound

    def is_builtin(self, name: str) -> bool:
        """Return whether nothing in the module binds a name that is visible here, so that it is Python's own."""
        return self._bound(name) is None and name not in self._names

    def _bound(self, name: str, stack: Sequence[_Scope] | None = None) -> Targets | None:
        """Return the targets of a name in these scopes, all of them unless they are named."""
        for depth, scope in enumerate(reversed(self._stack if stack is None else stack)):
            # Functions do not see the names of the enclosing class.
            if name in scope.bound and ((depth == 0 and stack is None) or not scope.is_class):
                return scope.bound[name]
        return None


def bindings(nodes: Sequence[ast.AST]) -> dict[str, Targets]:
    """Return the names that statements or targets bind in their own scope, each with its possible targets."""
    bound: dict[str, dict[str, None]] = {}
    elsewhere: set[str] = set()
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, target in imported(node):
                bound.setdefault(name, {})[target] = None
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere.update(node.names)
        elif (own := _bound_by(node)) is not None:
            bound.setdefault(own, {})[LOCAL] = None
        if isinstance(node, COMPREHENSIONS):  # a walrus inside binds in the enclosing scope
            waiting += [each.target for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
        elif not isinstance(node, (*LEAVES, *OWN_SCOPE)):
            waiting += reversed(list(ast.iter_child_nodes(node)))
    return {name: tuple(targets) for name, targets in bound.items() if name not in elsewhere}


def _bound_by(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return None if isinstance(node.ctx, ast.Load) else node.id
    if isinstance(node, BINDING):
        return node.name
    return node.rest if isinstance(node, ast.MatchMapping) else None


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, each with its dotted name."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif alias.asname is not None:
            yield alias.asname, alias.name
        else:
            first = alias.name.partition(".")[0]
            yield first, first


def dotted_name(node: ast.expr) -> str:
    """Return `a.b.c` as it is written; empty for anything that does not begin with a name."""
    chain: list[str] = []
    while isinstance(node, ast.Attribute):
        chain.insert(0, node.attr)
        node = node.value
    return ".".join([node.id, *chain]) if isinstance(node, ast.Name) else ""


def is_within(dotted: str, places: Collection[str]) -> bool:
    """Return whether a dotted name is one of these, or lies below one."""
    parts = dotted.split(".")
    return any(".".join(parts[:size]) in places for size in range(1, len(parts) + 1))


def executed(node: ast.AST, *, deep: bool = True) -> Iterator[ast.AST]:
    """Yield the nodes below a node, or right below it, without annotations; with `deep`, the node too."""
    children = [
        each
        for name, value in ast.iter_fields(node)
        if name not in ("annotation", "returns")
        for each in (value if isinstance(value, list) else [value])
        if isinstance(each, ast.AST)
    ]
    if not deep:
        yield from children
        return
    yield node
    for child in children:
        yield from executed(child)
