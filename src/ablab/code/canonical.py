"""The canonical form of a definition: its syntax tree without anything that cannot affect a number.

Comments and positions are left out, and so are docstrings, annotations and messages of errors that no code reads. A
name is replaced by its target, so that neither the module nor an alias counts. The form is the same on every version of
Python, unlike that of `ast.dump`.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from ablab.code.readers import MARKS, NOTHING, Read, has_order
from ablab.code.scopes import COMPREHENSIONS, FUNCTIONS, LOCAL, Scopes, Targets, bindings, dotted_name, imported

Tree = Any
"""Lists, strings and null: what JSON can write."""


class Surroundings(Protocol):
    """What stands around a definition."""

    silent: frozenset[str]
    """Dotted names of functions and types that tell a person something: a statement that only calls one is left out."""

    of_others: bool
    """Whether the code is not ablab's: which import runs, and what a class body reads, is then part of the form."""

    def refer(self, dotted: str, node: ast.AST) -> Tree:
        """Return the form of a dotted name outside the definition, such as `ablab.seeding.derive` or `numpy.load`."""

    def note(self, name: str, node: ast.AST) -> None:
        """Note a use of `builtins.<name>`, or of `.<name>`, an attribute of something that only running tells."""


IMPORTS = (ast.Import, ast.ImportFrom)
BRANCHING = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match),
    *([ast.TryStar] if hasattr(ast, "TryStar") else []),
)

SKIPPED = {"ctx", "kind", "type_comment", "type_params"}
"""Fields that affect no number, or that only some versions of Python have."""

TYPES = {"annotation", "returns"}
"""Fields that affect a number only where code reads them."""


def canonical(
    statement: ast.stmt, names: Mapping[str, Targets], outside: Surroundings, read: Read = NOTHING
) -> list[tuple[str, Tree]]:
    """Return the parts of a top-level statement, by name: methods apart from their class, in the order of their names.

    A class in which the order may matter stays whole. `names`: what the module's own names are bound to.
    """
    form = _Form(Scopes(names, careful=outside.of_others), outside, read)
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return []
    if isinstance(statement, ast.AnnAssign) and statement.value is None and not read.types:
        return []
    if not isinstance(statement, ast.ClassDef) or read.order or has_order(statement, names):
        return [(getattr(statement, "name", ""), form.of(statement))]
    methods = sorted((s for s in statement.body if isinstance(s, FUNCTIONS)), key=lambda method: method.name)
    frame = [s for s in statement.body if not isinstance(s, FUNCTIONS)]
    parts = [(statement.name, form.class_of(statement, frame))]
    with form.scopes.entered(statement.body, is_class=True):
        parts += [(f"{statement.name}.{method.name}", form.of(method)) for method in methods]
    return parts


class _Form:
    """Builds the canonical form of one definition, scope by scope."""

    def __init__(self, scopes: Scopes, outside: Surroundings, read: Read) -> None:
        self.scopes, self.outside, self.read = scopes, outside, read
        self._skipped = SKIPPED if read.types else SKIPPED | TYPES
        self._types: list[Mapping[str, str]] = []
        self._branches = 0
        """The number of statements around that may not run, or may end early, as that in `try` may."""

    def of(self, node: object) -> Tree:
        """Return the form of a node or of a field's value."""
        if isinstance(node, list):
            return [self.of(each) for each in self._statements(node)]
        if not isinstance(node, ast.AST):
            return node if node is None else str(node)
        if isinstance(node, ast.Constant):
            return _constant(node.value)
        if isinstance(node, ast.JoinedStr):
            return self._text(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._name(node)
        if isinstance(node, (*FUNCTIONS, ast.Lambda)):
            return self._function(node)
        if isinstance(node, ast.ClassDef):
            return self.class_of(node, node.body)
        if isinstance(node, COMPREHENSIONS):
            return self._comprehension(node)
        if isinstance(node, ast.AnnAssign):
            return self._annotated(node)
        if isinstance(node, IMPORTS):
            return [type(node).__name__, *([name, self.outside.refer(dotted, node)] for name, dotted in imported(node))]
        if isinstance(node, BRANCHING) and not _is_for_types(node):
            self._branches += 1
            tree = self._plain(node)
            self._branches -= 1
            return tree
        if isinstance(node, ast.Raise) and not self.read.words:
            return ["Raise", *(self.of(_wordless(each)) for each in (node.exc, node.cause))]
        if isinstance(node, ast.Assert) and not self.read.words:
            return ["Assert", self.of(node.test)]
        return self._plain(node)

    def _plain(self, node: ast.AST, without: Sequence[str] = ()) -> Tree:
        """Return the node's class and its non-empty fields by name."""
        fields = sorted((name, value) for name, value in ast.iter_fields(node) if name not in without)
        kept = [
            (name, value) for name, value in fields if name not in self._skipped and value is not None and value != []
        ]
        return [type(node).__name__, *([name, self.of(value)] for name, value in kept)]

    def _statements(self, nodes: Sequence[object]) -> Iterator[object]:
        """Skip statements that do nothing, print, or bind a name to an import: the name's use identifies its target."""
        for node in nodes:
            if isinstance(node, ast.Pass) or (isinstance(node, IMPORTS) and not self._decides(node)):
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and not self.read.docs:
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and self._is_silent(node.value):
                continue
            if isinstance(node, ast.AnnAssign) and node.value is None and not self.scopes.in_class:
                continue
            yield node

    def _decides(self, node: ast.Import | ast.ImportFrom) -> bool:
        """Return whether it matters that an import runs, as in `try`, or if uses of its name do not lead to it."""
        if not self.outside.of_others:
            return False
        is_seen = all(self.scopes.binds(name) for name, _ in imported(node))
        return self._branches > 0 or self.scopes.in_class or not is_seen

    def _is_silent(self, call: ast.Call) -> bool:
        """Return whether a call only tells something: what is called, or the type of the parameter called, says so."""
        first, *rest = dotted_name(call.func).split(".")
        typed = next((types[first] for types in reversed(self._types) if first in types), None)
        if typed is None:
            typed = self.scopes.targets(first)[-1]
        return ".".join([typed, *rest]) in self.outside.silent

    def _name(self, node: ast.Name | ast.Attribute) -> Tree:
        """Resolve a chain of attributes. If its first name comes from outside, the chain is one dotted name."""
        chain: list[str] = []
        first: ast.expr = node
        while isinstance(first, ast.Attribute):
            chain.insert(0, first.attr)
            first = first.value
        if not isinstance(first, ast.Name):
            self._note(chain, node)
            return _attributes(self.of(first), chain)
        if self.scopes.is_builtin(first.id):
            self.outside.note(f"builtins.{first.id}", node)
        trees = []
        for target in self.scopes.targets(first.id):
            if target == LOCAL:
                self._note(chain, node)
                trees.append(_attributes(["Name", first.id], chain))
            else:
                trees.append(self.outside.refer(".".join([target, *chain]), node))
        return trees[0] if len(trees) == 1 else ["any", *trees]

    def _note(self, attributes: Sequence[str], node: ast.AST) -> None:
        for attribute in attributes:
            self.outside.note(f".{attribute}", node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Tree:
        """Return the form of a function. Decorators and default values belong to the enclosing scope."""
        around = [self.of(getattr(node, "decorator_list", [])), self.of(node.args.defaults)]
        around += [[None if default is None else self.of(default) for default in node.args.kw_defaults]]
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        body = node.body if isinstance(node.body, list) else [node.body]
        if self.read.types and (returned := getattr(node, "returns", None)) is not None:
            around.append(self.of(returned))
        given = [each for each in arguments if each is not None]
        self._types.append(
            {each.arg: self._type_of(each.annotation) for each in given} | dict.fromkeys(bindings(body), "")
        )
        with self.scopes.entered(body, bound=[each.arg for each in given]):
            inner = [self._plain(node.args, without=["defaults", "kw_defaults"]), self.of(body)]
        self._types.pop()
        return [type(node).__name__, getattr(node, "name", ""), *around, *inner]

    def _type_of(self, annotation: ast.expr | None) -> str:
        """Return the dotted name of a type from elsewhere; empty for any other."""
        first, *rest = dotted_name(annotation).split(".") if annotation is not None else [""]
        return ".".join([self.scopes.targets(first)[-1], *rest])

    def class_of(self, node: ast.ClassDef, body: Sequence[ast.stmt]) -> Tree:
        """Return the form of a class with some of the statements of its body."""
        around = self._plain(node, without=["body", "name"])
        with self.scopes.entered(node.body, is_class=True):
            return [*around, node.name, self.of(list(body))]

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Tree:
        """Return the form of a comprehension. The first iterable belongs to the enclosing scope."""
        first, *others = node.generators
        source = self.of(first.iter)
        with self.scopes.entered([each.target for each in node.generators]):
            head = [self.of(first.target), source, self.of(first.ifs), str(first.is_async)]
            return [type(node).__name__, head, self.of(others), self._plain(node, without=["generators"])]

    def _annotated(self, node: ast.AnnAssign) -> Tree:
        """Return the form of an annotated assignment: a field inside a class, a plain assignment outside."""
        types = [self.of(node.annotation)] if self.read.types else []
        if not self.scopes.in_class:
            return ["Assign", ["targets", [self.of(node.target)]], ["value", self.of(node.value)], *types]
        marks = {part.id for part in ast.walk(node.annotation) if isinstance(part, ast.Name)}
        marks |= {part.attr for part in ast.walk(node.annotation) if isinstance(part, ast.Attribute)}
        marked = [mark for mark in MARKS if mark in marks]
        return ["AnnAssign", marked, self.of(node.target), self.of(node.value), *types]

    def _text(self, node: ast.JoinedStr) -> Tree:
        """Return the form of an f-string. Adjacent constants are joined: their split depends on Python's version."""
        parts: list[Tree] = []
        for value in node.values:
            if not isinstance(value, ast.Constant):
                parts.append(self._plain(value))
            elif parts and isinstance(parts[-1], str):
                parts[-1] += str(value.value)
            elif value.value:
                parts.append(str(value.value))
        return ["JoinedStr", *parts]


def _is_for_types(node: ast.AST) -> bool:
    """Return whether a statement runs for type checkers alone."""
    return isinstance(node, ast.If) and dotted_name(node.test).rpartition(".")[2] == "TYPE_CHECKING"


def _attributes(tree: Tree, chain: Sequence[str]) -> Tree:
    for attribute in chain:
        tree = ["Attribute", tree, attribute]
    return tree


def _constant(value: object) -> Tree:
    """Return the type and digits of a constant: 0.0, 0 and False are distinct."""
    return ["Constant", type(value).__name__, value if isinstance(value, str) else repr(value)]


def _wordless(node: ast.expr | None) -> ast.expr | None:
    """Return an error without its message, which affects no number: the error ends the run."""
    if not isinstance(node, ast.Call):
        return node
    kept = [each for each in node.args if not _is_text(each)]
    return ast.Call(func=node.func, args=kept, keywords=node.keywords)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
