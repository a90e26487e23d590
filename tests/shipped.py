"""The parts that ablab ships, by their kinds."""

from typing import Any

from ablab.code.find import find_part
from ablab.code.folders import shipped_targets
from ablab.code.load import load


def shipped(group: str) -> dict[str, Any]:
    """Return the class or function behind each kind of a group."""
    return {kind: load(find_part(target)) for kind, target in shipped_targets(group).items()}
