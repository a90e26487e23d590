"""Exit codes of all commands, and what may be said to the user in one line, without a traceback."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

DONE = 0
FAILED = 1
BAD_INPUT = 2
BUSY = 3
"""Another process is at the run; only processes of a sweep end with it."""
STOPPED = 4
"""A search has stopped the run as a poor trial; only processes of a sweep end with it."""
UNSUITABLE = 5
"""The machine lacks what the words ask for, such as a GPU; only processes of a sweep end with it."""
INTERRUPTED = 130


class UserError(Exception):
    """Bad input: says what is wrong, what came and what is allowed. Scripts print it and exit with 2."""


class MachineError(UserError):
    """This machine lacks what the words ask for, so that it would refuse every run that asks for it."""


class OtherCodeError(UserError):
    """A run cannot go on from its checkpoint as it began: its code, libraries or threads were others."""


class LostError(UserError):
    """A process that a run needs has ended; no fault of the input. Scripts print it and exit with 1."""


def choices(given: object, allowed: Iterable[str], *, likeness: float = 0.6) -> str:
    """`allowed: a, b, c; did you mean b?` for an unknown name, the nearest first where there is one.

    `likeness`: 0.6 to 1, how alike names must be to be proposed; high where another name is another experiment.
    """
    names = sorted(allowed)
    near = get_close_matches(str(given), names, n=1, cutoff=likeness)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"allowed: {', '.join(names)}{hint}"


def first_error(error: ValidationError, values: Mapping[str, Any], prefix: str = "") -> str:
    """The first thing wrong in the order of `values`, in one line: `key=value: what is allowed`."""
    order = {key: number for number, key in enumerate(values)}
    detail = min(error.errors(), key=lambda detail: order.get(str(detail["loc"][0]), len(order)))
    key = prefix + ".".join(str(part) for part in detail["loc"])
    message = detail["msg"]
    for opening in ("Value error, ", "Input should be ", "String should have "):
        message = message.removeprefix(opening)
    if detail["type"] == "missing":
        return f"{key}: missing; the YAML file must set it"
    if detail["type"] == "extra_forbidden":
        return f"{key}={detail['input']}: no such key for this option"
    allowed = message if message.startswith("allowed") else f"allowed: {message}"
    given = "null" if detail["input"] is None else detail["input"]
    return f"{key}={given}: {allowed}"


def reason(error: ValidationError) -> str:
    """What is wrong first in a file, and where in it."""
    first = error.errors()[0]
    return ": ".join(part for part in (".".join(map(str, first["loc"])), first["msg"]) if part)
