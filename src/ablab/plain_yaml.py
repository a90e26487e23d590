"""YAML that others wrote: what would take more memory than any machine has is refused before it is read."""

import yaml

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
