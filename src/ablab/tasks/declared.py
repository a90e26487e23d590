"""Tasks that an experiment file declares itself, each by a key at its top."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from ablab.tasks.command.declared import CommandBlock, in_words


class Declaring(NamedTuple):
    """`block`: the keys that belong together, and their types. `in_words`: takes the block and the other keys of the
    file, and returns these with words that choose the task and its settings.
    """

    block: type[BaseModel]
    in_words: Callable[[Any, Mapping[str, Any]], dict[str, Any]]


DECLARING: Mapping[str, Declaring] = {"command": Declaring(CommandBlock, in_words)}
"""By the key that tells that a file declares the task."""
