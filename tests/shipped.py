"""The parts that ablab ships, by their kinds."""

from typing import Any

from ablab.code.find import find_part
from ablab.code.load import load
from ablab.code.shipped import shipped_targets


def shipped(group: str) -> dict[str, Any]:
    """Return the class or function behind each kind of a group."""
    return {kind: load(find_part(target)) for kind, target in shipped_targets(group).items()}
