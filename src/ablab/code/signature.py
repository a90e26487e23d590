"""Signatures read from the syntax: what a class or function takes, with types and ranges, without importing it."""

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ablab.code.modules import Module, Package
from ablab.code.scopes import LOCAL, dotted_name

MISSING: Any = object()
"""The default of a parameter that has none."""

READABLE = ("typing", "pydantic", "annotated_types", "ablab.fields")
"""Modules whose names an annotation may use. They are imported: none of them is heavy, and none is a user's."""

BUILTINS = ("int", "float", "bool", "str", "list", "dict", "None")


READ = ("needs", "needs_files", "needs_files_only")
"""What a class says of itself, which is read from its source alone."""


class SignatureError(Exception):
    """A signature that cannot be read, with the reason."""


@dataclass(frozen=True)
class Parameter:
    """A parameter: its type as `owner`, the module in which it stands, writes it, and its default or MISSING."""

    annotation: ast.expr | None
    default: Any
    owner: Module


@dataclass(frozen=True)
class Signature:
    """What a class's constructor, or a function, takes.

    `module`: that of the definition. `constants`: the literal values that a class binds in its body, its own before
    those of its bases.
    """

    module: Module
    parameters: Mapping[str, Parameter]
    constants: Mapping[str, Any]
    is_class: bool

    def type_of(self, name: str) -> Any:
        """Return the type of a parameter; SignatureError if the annotation is missing or no readable type."""
        parameter = self.parameters[name]
        if parameter.annotation is None:
            raise SignatureError(f"{name} has no type")
        try:
            return _evaluated(parameter.annotation, parameter.owner)
        except (SignatureError, TypeError, ValueError, RecursionError) as error:  # by a type that takes no such values
            written = ast.unparse(parameter.annotation)
            why = " ".join(str(error).split())
            raise SignatureError(f"{name}: {written} cannot be read as a type ({why})") from None


def signature(dotted: str, packages: Sequence[Package]) -> Signature:
    """Read the signature of `dotted`; a class without a constructor takes that of its first base that has one.

    Raises SignatureError if there is no such definition in these packages, or none that takes anything readable.
    """
    module, statement = definition(dotted, packages)
    if isinstance(statement, ast.FunctionDef):
        return Signature(module, _parameters(statement, module, skip=0), {}, is_class=False)
    line = with_bases(dotted, packages)
    constants = {name: value for _, each in reversed(line) for name, value in _constants(each).items()}
    for place, (owner, each) in enumerate(line):
        if (constructor := _constructor(each)) is not None:
            return Signature(module, _parameters(constructor, owner, skip=1), constants, is_class=True)
        if _is_dataclass(each):
            bases = [base for base in line[place:] if _is_dataclass(base[1])]
            fields = {name: field for base in reversed(bases) for name, field in _fields(*base).items()}
            return Signature(module, fields, constants, is_class=True)
    return Signature(module, {}, constants, is_class=True)


def definition(dotted: str, packages: Sequence[Package]) -> tuple[Module, ast.ClassDef | ast.FunctionDef]:
    """Return the class or function of this dotted name, and its module; SignatureError if there is none."""
    for package in packages:
        if not package.holds(dotted):
            continue
        try:
            found = package.owner(dotted)
        except LookupError as error:
            raise SignatureError(str(error)) from None
        except SyntaxError as error:
            raise SignatureError(f"{error.filename}, line {error.lineno}: {error.msg}") from None
        if found is None or not found[1] or found[2]:
            break
        statement = found[0].definitions[found[1]][-1]
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            return found[0], statement
        raise SignatureError(f"{dotted} is neither a class nor a function")
    raise SignatureError(f"there is no {dotted}")


def with_bases(dotted: str, packages: Sequence[Package]) -> list[tuple[Module, ast.ClassDef]]:
    """Return a class and its bases, as far as they lie in these packages, each with its module."""
    module, statement = definition(dotted, packages)
    if not isinstance(statement, ast.ClassDef):
        return []
    # A base that several have comes after all of them, as in Python.
    line = [*_with_bases(module, statement, packages)]
    found = {(owner.name, each.name): (owner, each) for owner, each in reversed(line)}
    return list(reversed(found.values()))


def literal_of(statement: ast.stmt) -> Any:
    """Return the literal value that an assignment binds; its text if it is computed."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    try:
        return ast.literal_eval(value or ast.unparse(statement))
    except (ValueError, SyntaxError):
        return ast.unparse(statement)


def _with_bases(
    module: Module, statement: ast.ClassDef, packages: Sequence[Package]
) -> Iterator[tuple[Module, ast.ClassDef]]:
    """Yield the class and its bases, the first before the second, as far as they lie in these packages."""
    yield module, statement
    for base in statement.bases:
        named = base.value if isinstance(base, ast.Subscript) else base  # Base[int]
        target = _dotted(named, module, but=f"{module.name}.{statement.name}")
        if target is None or not any(package.holds(target) for package in packages):
            continue
        owner, above = definition(target, packages)
        if isinstance(above, ast.ClassDef):
            yield from _with_bases(owner, above, packages)


def _parameters(function: ast.FunctionDef, owner: Module, skip: int) -> dict[str, Parameter]:
    taken = function.args
    if taken.vararg or taken.kwarg:
        raise SignatureError(f"{function.name} takes *args or **kwargs, which name no field")
    if len(taken.posonlyargs) > skip:
        name = taken.posonlyargs[-1].arg
        raise SignatureError(f"{function.name} takes {name} by its place alone; allowed: fields, by their names")
    plain = [*taken.posonlyargs, *taken.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(taken.defaults)) + list(taken.defaults)
    pairs = [*zip(plain, defaults, strict=True), *zip(taken.kwonlyargs, taken.kw_defaults, strict=True)]
    return {each.arg: Parameter(each.annotation, _default(each.arg, default), owner) for each, default in pairs[skip:]}


def _constructor(statement: ast.ClassDef) -> ast.FunctionDef | None:
    return next((s for s in statement.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)


def _is_dataclass(statement: ast.ClassDef) -> bool:
    decorators = [each.func if isinstance(each, ast.Call) else each for each in statement.decorator_list]
    return any(ast.unparse(each).rpartition(".")[2] == "dataclass" for each in decorators)


def _fields(owner: Module, statement: ast.ClassDef) -> dict[str, Parameter]:
    """Return the fields that a dataclass adds to those of its bases; its constructor takes all of them."""
    fields = [each for each in statement.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    return {
        field.target.id: Parameter(field.annotation, _default(field.target.id, field.value), owner)
        for field in fields
        if isinstance(field.target, ast.Name) and "ClassVar" not in ast.unparse(field.annotation)
    }


def _default(name: str, node: ast.expr | None) -> Any:
    if node is None:
        return MISSING
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise SignatureError(f"{name}: its default, {ast.unparse(node)}, is no literal value") from None


def _constants(statement: ast.ClassDef) -> dict[str, Any]:
    found = {}
    for each in statement.body:
        if not isinstance(each, (ast.Assign, ast.AnnAssign)) or each.value is None:
            continue
        target = each.target if isinstance(each, ast.AnnAssign) else each.targets[0]
        if isinstance(target, ast.Name):
            try:
                found[target.id] = ast.literal_eval(each.value)
            except ValueError:
                if target.id in READ:
                    raise SignatureError(
                        f"{statement.name}.{target.id} = {ast.unparse(each.value)} is computed; allowed: a literal"
                    ) from None
    return found


def _dotted(node: ast.expr, module: Module, but: str = "") -> str | None:
    """Return what a chain of names refers to, `parts.Base` or `torch.nn.Module`; None for anything computed.

    `but`: no target of it, as the class that `class Line(Line)` binds is not its own base.
    """
    first, *rest = dotted_name(node).split(".")
    if not first:
        return None
    targets = [target for target in module.names.get(first, (LOCAL,)) if target != but] or [LOCAL]
    return ".".join([targets[-1] or first, *rest])


def _evaluated(node: ast.expr, module: Module) -> Any:
    """Evaluate an annotation: names that types may use, subscripts, unions, literals and calls of those names."""
    if isinstance(node, ast.Constant):
        return _evaluated(_referred(node.value), module) if isinstance(node.value, str) else node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _named(node, module)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _evaluated(node.left, module) | _evaluated(node.right, module)
    if isinstance(node, ast.Subscript):
        return _subscript(node, module)
    if isinstance(node, ast.Call):
        options = {each.arg: _literal(each.value) for each in node.keywords if each.arg is not None}
        return _evaluated(node.func, module)(*map(_literal, node.args), **options)
    raise SignatureError(f"{ast.unparse(node)} is computed")


def _referred(text: str) -> ast.expr:
    """Parse a forward reference."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise SignatureError(error.msg) from None


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise SignatureError(f"{ast.unparse(node)} is computed") from None


def _subscript(node: ast.Subscript, module: Module) -> Any:
    origin = _evaluated(node.value, module)
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if getattr(origin, "_name", None) == "Literal":
        values = [_literal(each) for each in inner]
    else:
        values = [_evaluated(each, module) for each in inner]
    return origin[tuple(values)] if len(values) > 1 else origin[values[0]]


def _named(node: ast.expr, module: Module) -> Any:
    target = _dotted(node, module)
    if target is None:
        raise SignatureError(f"{ast.unparse(node)} is computed")
    if target in BUILTINS:
        return getattr(builtins, target)
    place, _, name = target.rpartition(".")
    if place == module.name and isinstance(statement := module.definitions.get(name, [None])[-1], ast.Assign):
        return _evaluated(statement.value, module)
    if place not in READABLE:
        raise SignatureError(f"{target} is none of {', '.join((*BUILTINS[:-1], *READABLE))}")
    found = getattr(import_module(place), name, MISSING)
    if found is MISSING:
        raise SignatureError(f"{place} has no {name}")
    return found
