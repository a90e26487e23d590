"""YAML that others wrote, read by version 1.2: what would take more memory than any machine has is refused before."""

import re
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import yaml

from ablab.errors import UserError

MOST_NODES = 100_000
"""Most values that a file may stand for: an alias repeats what it names, so that 300 bytes can mean a billion."""


def checked(text: str) -> str:
    """Return the text; YAMLError if its aliases repeat too much or without end."""
    # Few files have an alias, and without one a text means no more than it holds.
    if "*" in text:
        _count(yaml.compose(text, yaml.SafeLoader), {})
    return text


def _count(node: yaml.Node | None, counts: dict[int, int | None]) -> int:
    """Return how many nodes this one stands for. `counts`: by the identity of each; None while it is being counted."""
    if isinstance(node, yaml.ScalarNode) or node is None:
        return 1
    if id(node) in counts:
        known = counts[id(node)]
        if known is None:
            raise yaml.YAMLError("it contains itself, by an alias")
        return known
    counts[id(node)] = None
    inside = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    total = 1 + sum(_count(part, counts) for part in inside)
    if total > MOST_NODES:
        raise yaml.YAMLError(f"its aliases stand for more than {MOST_NODES:,} values")
    counts[id(node)] = total
    return total


class Loader(yaml.SafeLoader):
    """YAML with the booleans and numbers of version 1.2, in which `off` is a word and 1e-3 a number.

    Keys are text: a level may be called on, 0.1 or true. A key that comes twice is an error.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            key.tag = self.DEFAULT_SCALAR_TAG
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} comes twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


BOOL, INT, FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float"))
WHOLE = r"[-+]?[0-9]+$"
"""Without the octal numbers of version 1.1, in which 010 is 8, and times such as 1:30."""

TRUE_OR_FALSE = "(true|True|TRUE|false|False|FALSE)$"
OTHERWISE = (BOOL, INT, FLOAT, "tag:yaml.org,2002:timestamp")
"""What version 1.1 reads otherwise."""

NUMBER = r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
"""A whole number too: the resolver of those comes first."""

Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in OTHERWISE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(BOOL, re.compile(TRUE_OR_FALSE), list("tTfF"))
Loader.add_constructor(INT, lambda loader, node: int(loader.construct_scalar(node)))
Loader.add_implicit_resolver(INT, re.compile(WHOLE), list("-+0123456789"))
Loader.add_implicit_resolver(FLOAT, re.compile(NUMBER), list("-+.0123456789"))


def read_yaml(text: str, prepare: Callable[[yaml.Node], None] = lambda node: None) -> Any:
    """Return the content of a YAML text; YAMLError or ValueError where it cannot be read.

    `prepare`: may take scalars for text before they become numbers.
    """
    loader = Loader(checked(text))
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        prepare(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def read_mapping(
    path: Path, allowed: str, prepare: Callable[[yaml.Node], None] = lambda node: None
) -> dict[Hashable, Any]:
    """Return the keys and values of a YAML file; UserError where it cannot be read, or has none: what is `allowed`."""
    try:
        content = read_yaml(path.read_text(encoding="utf-8"), prepare)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # PyYAML leaves bad dates to Python
        raise UserError(f"{path}: not readable as YAML ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: {allowed}")
    return content


def take_for_text(node: yaml.Node) -> None:
    """Leave a number, or a truth, as it is written, also within lists. Null stays null."""
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            take_for_text(each)
    elif isinstance(node, yaml.ScalarNode) and node.tag in (BOOL, INT, FLOAT):
        node.tag = Loader.DEFAULT_SCALAR_TAG
