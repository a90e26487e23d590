"""What code reads of its own text when it runs: docstrings, messages, types, the order of a class, a whole module.

Such text decides nothing unless something reads it. So a digest leaves it out where nothing that is reached does.
"""

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from ablab.code.modules import Module, Package
from ablab.code.scopes import FUNCTIONS, Targets, bindings, dotted_name, executed

DOCS = {"__doc__", "getdoc", "inspect", "pydoc", "doctest"}
WORDS = {"suppress", "__exit__", "__aexit__", "exc_info", "excepthook", "traceback"}
TYPES = {
    *("__annotations__", "get_type_hints", "get_annotations", "inspect", "signature", "singledispatch"),
    *("singledispatchmethod", "validate_call", "create_model", "make_dataclass", "TypeAdapter", "BaseModel"),
    *("jit", "script", "custom_op", "beartype", "typechecked", "fields", "__dataclass_fields__"),
}
ORDER = {"__dict__", "vars", "getmembers", "__set_name__", "__prepare__", "metaclass"}
MODULE = {"globals", "modules", "__subclasses__", "__init_subclass__", "metaclass"}
"""Names by which Python and well-known libraries read each of them."""

BLIND_TO_TYPES = {
    *("abc", "ablab", "collections", "contextlib", "dataclasses", "enum", "functools", "lightning", "numpy"),
    *("pytorch_lightning", "torch", "types", "typing", "typing_extensions", "warnings"),
}
"""Libraries whose decorators and base classes read no types, but for those in TYPES. Any other may."""

MARKS = ("ClassVar", "InitVar", "KW_ONLY")
"""Annotations in a dataclass that carry more meaning than a type."""

PLAIN = {"property", "staticmethod", "classmethod"}


@dataclass(frozen=True)
class Read:
    """What is read. `docs`: docstrings; `words`: messages of errors; `types`: annotations.

    `order`: that of a class's methods; `module`: every definition of a module, by whatever name.
    """

    docs: bool = False
    words: bool = False
    types: bool = False
    order: bool = False
    module: bool = False

    def __or__(self, other: "Read") -> "Read":
        return Read(*(getattr(self, each.name) or getattr(other, each.name) for each in fields(self)))


NOTHING = Read()


def read_by(statement: ast.stmt, module: Module, package: Package) -> Read:
    """Return what a statement of a module reads, or may hand to a library that does."""
    nodes = list(executed(statement))
    named = set(_identifiers(nodes, module.names))
    return Read(
        docs=bool(named & DOCS),
        words=bool(named & WORDS) or any(_reads_words(node, module, package) for node in nodes),
        types=bool(named & TYPES) or any(_reads_types(node, module, package) for node in ast.walk(statement)),
        order=bool(named & ORDER),
        module=bool(named & MODULE),
    )


def has_order(statement: ast.ClassDef, names: Mapping[str, Targets]) -> bool:
    """Return whether the place of a method in its class may matter.

    It does where the body uses or binds its name, or where several statements call something as the class is made.
    """
    methods = [each for each in statement.body if isinstance(each, FUNCTIONS)]
    frame = [each for each in statement.body if not isinstance(each, FUNCTIONS)]
    around = {method: list(_around(method, names)) for method in methods}
    evaluated: list[ast.AST] = [*frame, *(each for found in around.values() for each in found)]
    used = {node.id for each in evaluated for node in executed(each) if isinstance(node, ast.Name)}
    calling = sum(map(_calls, frame)) + sum(map(bool, around.values()))
    return bool({method.name for method in methods} & (used | set(bindings(frame)))) or (
        any(around.values()) and calling > 1
    )


def _around(method: ast.FunctionDef | ast.AsyncFunctionDef, names: Mapping[str, Targets]) -> Iterator[ast.expr]:
    """Yield decorators that are not Python's own, and default values that call something."""
    for each in method.decorator_list:
        is_plain = isinstance(each, ast.Name) and each.id in PLAIN and each.id not in names
        is_of_property = isinstance(each, ast.Attribute) and each.attr in ("setter", "getter", "deleter")
        if not is_plain and not (is_of_property and ast.unparse(each).partition(".")[0] == method.name):
            yield each
    yield from (each for each in [*method.args.defaults, *method.args.kw_defaults] if each is not None and _calls(each))


def _calls(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Call) for each in executed(node))


def _identifiers(nodes: Iterable[ast.AST], names: Mapping[str, Targets]) -> Iterator[str]:
    """Yield every name in these nodes, with what it is imported as, and every text that may be an attribute's name."""
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
            yield from (part for target in names.get(node.id, ()) for part in target.split("."))
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield node.arg
        elif isinstance(node, ast.alias):
            yield from node.name.split(".")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def _reads_words(node: ast.AST, module: Module, package: Package) -> bool:
    """Return whether a node catches errors, other than those of imports, or raises one of its own kind with a text."""
    if isinstance(node, ast.Try):
        return bool(node.handlers) and not all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in node.body)
    if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
        return False
    first, _, rest = dotted_name(node.exc.func).partition(".")
    targets = module.names.get(first, ())
    return (not targets and not hasattr(builtins, first)) or any(_is_own(f"{each}.{rest}", package) for each in targets)


def _reads_types(node: ast.AST, module: Module, package: Package) -> bool:
    """Return whether a node hands types to a library that may read them, or does more than name them."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        makers: list[ast.expr] = list(node.decorator_list)
        makers += [*node.bases, *(each.value for each in node.keywords)] if isinstance(node, ast.ClassDef) else []
        return any(_may_read_types(each, module, package) for each in makers)
    annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
    if not isinstance(annotation, ast.expr):
        return False
    inside = list(ast.walk(annotation))
    called = {
        part.id
        for each in inside
        if isinstance(each, ast.Call)
        for part in ast.walk(each)
        if isinstance(part, ast.Name)
    }
    own = any(_is_own(target, package) for name in called for target in module.names.get(name, ()))
    return own or (isinstance(node, ast.AnnAssign) and _hides_a_mark(inside, module.names))


def _hides_a_mark(nodes: Sequence[ast.AST], names: Mapping[str, Targets]) -> bool:
    """Return whether an annotation may say ClassVar or the like in other words."""
    if any(isinstance(node, ast.Constant) and isinstance(node.value, str) for node in nodes):
        return True
    used = [node.id for node in nodes if isinstance(node, ast.Name)]
    return any(
        target.rpartition(".")[2] in MARKS for name in used if name not in MARKS for target in names.get(name, ())
    )


def _may_read_types(maker: ast.expr, module: Module, package: Package) -> bool:
    called = maker.func if isinstance(maker, ast.Call) else maker
    first = dotted_name(called.value if isinstance(called, ast.Subscript) else called).partition(".")[0]
    outside = [each for each in module.names.get(first, ()) if not _is_own(each, package)]
    return any(target.partition(".")[0] not in BLIND_TO_TYPES for target in outside)


def _is_own(dotted: str, package: Package) -> bool:
    """Return whether a dotted name leads into the package."""
    return package.holds(dotted) and package.owner(dotted.rstrip(".")) is not None
