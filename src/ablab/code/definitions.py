"""Definitions of a package, what each of them names, and one digest for all that some roots reach."""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from typing import Any, NamedTuple

from ablab.code.canonical import canonical
from ablab.code.modules import Module, Package
from ablab.code.readers import NOTHING, Read, read_by
from ablab.code.scopes import is_within
from ablab.former import former

EFFECTS = "(module level)"
"""Name for the statements of a module that bind nothing."""

ORDER = "(order)"
"""Name for the order of a module's statements, where it matters."""


@dataclass(frozen=True)
class Digested:
    """A code digest of 12 hex digits, and 8 hex digits by the name of each function, method, class or constant."""

    digest: str
    definitions: Mapping[str, str]


class Key(NamedTuple):
    """The module and name of a definition."""

    module: str
    name: str

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Definition:
    """One definition: `parts`, its canonical form with methods apart; `uses`, the definitions it names, in order.

    `others`: where it names what is not of the package: `numpy.load`, `builtins.open`, or `.open`, an attribute of
    something that only running tells.
    """

    parts: Sequence[tuple[str, Any]]
    uses: Sequence[Key]
    others: Mapping[str, Sequence[ast.AST]]


def reached(sources: "Sources", roots: Iterable[str], unused: Iterable[str] = ()) -> dict[Key, Definition]:
    """Return every definition reachable from the dotted names `roots`.

    Definitions and modules in `unused` are skipped.
    """
    avoided = frozenset(unused)
    waiting = [key for root in roots for key in sources.keys_of_root(root)]
    found: dict[Key, Definition] = {}
    while waiting:
        key = waiting.pop()
        if key not in found and not is_within(key.dotted, avoided):
            found[key] = sources.definition(key)
            waiting += found[key].uses
            waiting += sources.effects(key)
    return found


class Sources:
    """The definitions of a package, except those in or below the dotted names `outside`.

    `silent`: functions and types that only tell a person something. `registries`: dictionaries without their entries,
    each of which is a definition by itself, `<dotted name>[<key>]`. `read`: what the code reads of its own text.
    """

    def __init__(
        self,
        package: Package,
        outside: Iterable[str] = (),
        silent: Iterable[str] = (),
        *,
        registries: Iterable[str] = (),
        read: Read = NOTHING,
    ) -> None:
        self.package, self.outside, self.silent, self.read = package, frozenset(outside), frozenset(silent), read
        self.registries = frozenset(registries)
        self.definition = cache(self._definition)

    def keys_of_root(self, dotted: str) -> list[Key]:
        """Return the definitions of a root, even if it stands in `outside`; LookupError if it is no definition."""
        name, bracket, entry = dotted.partition("[")
        owner = self.package.owner(name)
        if owner is None or not owner[1]:
            raise LookupError(f"{dotted} is no definition of {self.package.name}")
        return [Key(owner[0].name, f"{owner[1]}[{entry}")] if bracket else _keys(*owner)

    def definitions_of(self, dotted: str) -> list[str]:
        """Return the dotted name of a definition, or of all in a module; LookupError if there is no such name."""
        owner = self.package.owner(dotted)
        return [] if owner is None else [key.dotted for key in _keys(*owner)]

    def has_entry(self, registry: str, entry: str) -> bool:
        """Return whether a dictionary of the package has an entry of this name."""
        module, _, name = registry.rpartition(".")
        return entry in self._entries(Key(module, name))

    def _entries(self, key: Key) -> dict[str, ast.expr]:
        """Return the entries of a dictionary that a module writes out, without those that it takes from others."""
        (statement,) = self._module(key).definitions[key.name]
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        assert isinstance(value, ast.Dict), f"{key.dotted} is no dictionary"
        pairs = zip(value.keys, value.values, strict=True)
        return {str(each.value): entry for each, entry in pairs if isinstance(each, ast.Constant)}

    def effects(self, key: Key) -> list[Key]:
        """Return what the definition's module does when it is imported, if anything.

        These are statements that bind nothing. In code that is not ablab's, they are also those of the modules that it
        imports, definitions that do more than define, and what decorators may register: the code that looks it up need
        not name it.
        """
        module = self._module(key)
        if self.package.strict:
            return [Key(key.module, EFFECTS)] if module.effects else []
        modules = self.package.imported_by(module)
        every = self.read.module or any(each.enters_subclasses for each in modules)
        return [Key(each.name, name) for each in modules for name in self._effects(each, every=every)]

    def _effects(self, module: Module, *, every: bool) -> Iterator[str]:
        if module.effects:
            yield EFFECTS
        if module.order:
            yield ORDER
        if every:
            yield from sorted(module.definitions)
        else:
            yield from self.package.registered(module)
            yield from module.acting

    def statements(self, key: Key) -> Sequence[ast.stmt]:
        """Return the statements of a definition: a name bound more than once has several."""
        module = self._module(key)
        if key.dotted in self.registries:
            return ()
        name, bracket, entry = key.name.partition("[")
        if bracket:
            return [ast.Expr(self._entries(Key(key.module, name))[entry.removesuffix("]")])]
        return module.effects if key.name == EFFECTS else module.definitions.get(key.name, ())

    def _definition(self, key: Key) -> Definition:
        """Return its form and what it uses. A name bound more than once includes all of these statements."""
        if key.name == ORDER:
            return Definition([(ORDER, list(self._module(key).order))], [], {})
        names, around = self._module(key).names, _Around(self)
        forms = [
            (name or key.name, tree)
            for each in self.statements(key)
            for name, tree in canonical(each, names, around, self.read)
        ]
        imports = [target for target in names.get(key.name, ()) if target != key.dotted]
        return Definition(
            [*forms, *((key.name, around.refer(each, ast.Pass(lineno=0))) for each in imports)],
            around.uses,
            around.others,
        )

    def read_by(self, found: Iterable[Key]) -> Read:
        """Return what these definitions read of their own text."""
        found = list(found)
        every = [read_by(each, self._module(key), self.package) for key in found for each in self.statements(key)]
        return reduce(or_, every, NOTHING)

    def _module(self, key: Key) -> Module:
        module = self.package.module(key.module)
        assert module is not None
        return module


class _Around:
    """What a definition names outside itself."""

    def __init__(self, sources: Sources) -> None:
        self.sources, self.silent, self.of_others = sources, sources.silent, not sources.package.strict
        self.uses: list[Key] = []
        self.others: dict[str, list[ast.AST]] = {}

    def refer(self, dotted: str, node: ast.AST) -> Any:
        """Return the form of a dotted name: of a definition here, or from elsewhere."""
        package, outside = self.sources.package, self.sources.outside
        owner = None if is_within(dotted, outside) else package.owner(dotted)
        if owner is None:
            self.note(dotted, node)
            return ["from", former(dotted)] if dotted.partition(".")[0] != package.name else ["outside"]
        if is_within(f"{owner[0].name}.{owner[1]}", outside):
            return ["outside"]
        keys = _keys(*owner)
        self.uses.extend(keys)
        if self.of_others:  # a package and its star imports may have several of a name, of which running tells the one
            others = (key for each in package.owners(dotted) for key in _keys(*each))
            self.uses.extend(key for key in dict.fromkeys(others) if key not in keys)
        for attribute in owner[2]:  # of a value that only running tells, such as PATH.read_text
            self.note(f".{attribute}", node)
        return ["of", *(key.name for key in keys), *owner[2]]

    def note(self, name: str, node: ast.AST) -> None:
        self.others.setdefault(name, []).append(node)


def _keys(module: Module, name: str, attributes: Sequence[str]) -> list[Key]:
    """Return the key of a definition, or of all definitions of a module that is used as a value."""
    names = [name] if name else [] if attributes else sorted(set(module.definitions) - {"__all__"})
    return [Key(module.name, each) for each in names]


def code_of(definitions: Mapping[Key, Definition]) -> Digested:
    """Return one digest for all definitions, and one for each part by name."""
    colours = {key: _hash([key.name, each.parts]) for key, each in definitions.items()}
    while True:
        # A name does not distinguish two definitions that share it; the definitions they use do.
        finer = {
            key: _hash([colours[key], [colours.get(used) for used in each.uses]]) for key, each in definitions.items()
        }
        settled = len(set(finer.values())) == len(set(colours.values()))
        colours = finer
        if settled:
            break
    named: dict[str, list[str]] = {}
    for each in definitions.values():
        for name, tree in each.parts:
            named.setdefault(name, []).append(_hash(tree))
    parts = {name: _hash(sorted(hashes))[:8] for name, hashes in sorted(named.items())}
    return Digested(_hash(sorted(colours.values()))[:12], parts)


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()
