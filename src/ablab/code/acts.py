"""What a module does when it is imported, besides binding names to what it defines."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ablab.code.scopes import FUNCTIONS, Targets, bindings, dotted_name, executed

HARMLESS = {
    *("bool", "bytes", "complex", "dict", "float", "frozenset", "int", "len", "list", "max", "min", "range", "round"),
    *("set", "slice", "sorted", "str", "sum", "tuple", "zip", "property", "staticmethod", "classmethod"),
}
"""Functions of Python's own that only return a value."""

HARMLESS_OF = ("abc", "contextlib", "dataclasses", "functools", "logging.getLogger", "math", "re", "typing", "warnings")
"""Modules, and a function, of which the same holds."""


def acts(statement: ast.stmt, names: Mapping[str, Targets]) -> bool:
    """Return whether a statement of a module may do more than bind names to values.

    A function or class acts where its decorators, default values or bases, or the statements in the class, call
    something that is not known to be harmless. `names`: what the module's names are bound to.
    """
    if isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass, ast.Global)) or is_guard(statement, names):
        return False
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.AugAssign) and dotted_name(statement.target) != "__all__":
        return True  # it may change what another module holds
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        plain = (ast.Name, ast.Tuple, ast.List, ast.Starred, ast.expr_context)
        return not all(isinstance(node, plain) for target in targets for node in ast.walk(target)) or (
            statement.value is not None and _calls(statement.value, names)
        )
    if isinstance(statement, (ast.Delete, ast.Raise, ast.Assert)):
        return True
    inside = [each for each in _children(statement) if isinstance(each, ast.stmt)]
    around = [each for each in _children(statement) if not isinstance(each, ast.stmt)]
    decorators = [each for each in getattr(statement, "decorator_list", ()) if not isinstance(each, ast.Call)]
    if any(_is_stored(node) for each in around for node in ast.walk(each)):  # by `for` and `with`
        return True
    if any(_is_partial(each) for each in getattr(statement, "decorator_list", ())):
        return True
    if any(_calls(each, names) for each in around) or not all(_is_harmless(each, names) for each in decorators):
        return True
    return not isinstance(statement, FUNCTIONS) and any(acts(each, names) for each in inside)


def order_of(body: Sequence[ast.stmt], names: Mapping[str, Targets]) -> list[str]:
    """Return, in their order, what the statements bind whose order among definitions may matter; "" binds nothing.

    These act, or bind a name that others bind anew, or use such a name when the module is imported. Empty where the
    statements of one definition, or those that bind nothing, keep all of the order.
    """
    bound = [sorted(bindings([each])) for each in body]
    counts = Counter(name for each in bound for name in each)
    used = [
        {node.id for part in _at_import(each) for node in executed(part) if isinstance(node, ast.Name)} for each in body
    ]
    contested = {
        name for own, mentioned in zip(bound, used, strict=True) for name in mentioned - set(own) if counts[name] > 1
    }
    found = [
        ",".join(own)
        for each, own, mentioned in zip(body, bound, used, strict=True)
        if acts(each, names) or contested & {*own, *mentioned}
    ]
    return found if len(set(found)) > 1 else []


def _at_import(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield what of a statement is evaluated when the module is imported: of a function, all but its body."""
    if isinstance(statement, FUNCTIONS):
        yield from (*statement.decorator_list, *statement.args.defaults, *filter(None, statement.args.kw_defaults))
    elif isinstance(statement, ast.ClassDef):
        yield from (*statement.decorator_list, *statement.bases, *statement.keywords)
        for each in statement.body:
            yield from _at_import(each)
    else:
        yield statement


def is_guard(statement: ast.stmt, names: Mapping[str, Targets]) -> bool:
    """Return whether a statement runs only in the program itself, or only for a type checker."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    first, _, rest = dotted_name(statement.test).partition(".")
    if ".".join([*names.get(first, ()), *filter(None, [rest])]) == "typing.TYPE_CHECKING":
        return True
    return ast.unparse(statement.test) in ("__name__ == '__main__'", "'__main__' == __name__")


def _children(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the statements and expressions right below a statement, those of `except`, `with` and `case` included."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, (ast.ExceptHandler, ast.match_case, ast.withitem)):
            yield from ast.iter_child_nodes(child)
        else:
            yield child


def _calls(node: ast.AST, names: Mapping[str, Targets]) -> bool:
    """Return whether an expression calls, as it is evaluated, anything that is not known to be harmless."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (ast.Await, ast.NamedExpr)) or (
            isinstance(each, ast.Call) and (not _is_harmless(each.func, names) or _hands_over(each))
        ):
            return True
        if not isinstance(each, ast.Lambda):
            waiting += executed(each, deep=False)
    return False


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)


def _is_partial(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and dotted_name(decorator.func).rpartition(".")[2] == "partial"


def _hands_over(call: ast.Call) -> bool:
    """Return whether a harmless call may call what it is handed: `sorted(names, key=enter)`, `reduce(enter, names)`."""
    return dotted_name(call.func).rpartition(".")[2] == "reduce" or any(each.arg == "key" for each in call.keywords)


def _is_harmless(called: ast.expr, names: Mapping[str, Targets]) -> bool:
    first, _, rest = dotted_name(called).partition(".")
    targets = names.get(first)
    if targets is None:
        return first in HARMLESS and not rest
    dotted = [".".join(filter(None, [target, rest])) for target in targets]
    return all(f"{each}.".startswith(tuple(f"{known}." for known in HARMLESS_OF)) for each in dotted)
