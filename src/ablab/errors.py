"""Exit codes of all commands, and errors that are reported to the user in one line, without a traceback."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.metadata import requires
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

DONE = 0
FAILED = 1
BAD_INPUT = 2
BUSY = 3
"""Another process works on the run or search."""
STOPPED = 4
"""A search has stopped the run as a poor trial; only processes of a sweep end with this code."""
UNSUITABLE = 5
"""The machine lacks something the settings require, such as a GPU; only processes of a sweep end with this code."""
DROPPED, RUN_FAILED, DIVERGED, NULL = 10, 11, 12, 13
"""What became of a proposal that a loop has not kept."""
INTERRUPTED = 130


class UserError(Exception):
    """Bad input. The message names the problem, the value and what is allowed; scripts print it and exit with 2."""


class MachineError(UserError):
    """This machine lacks something the settings require, so that every run with these settings would fail on it."""


class OtherCodeError(UserError):
    """A run cannot resume from its checkpoint because its code, libraries or threads have changed."""


class MissingPartError(UserError):
    """A model needs a part that no option here names, or whose source is another than the one it was trained with."""

    def __init__(self, message: str, group: str) -> None:
        super().__init__(message)
        self.group = group


class BusyError(UserError):
    """Another process works on a run or search. Scripts print the message and exit with 3."""


class TakenOverError(BusyError):
    """Another process has taken over the run on which this one worked."""


class LostError(UserError):
    """A process that a run needs has ended; the input is not at fault. Scripts print the message and exit with 1."""


class PartError(LostError):
    """The user's own part raised an error; the message says in which file and line."""


@contextmanager
def about(what: object) -> Iterator[None]:
    """Within the block, a UserError says first what it is about: `<what>: <message>`."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{what}: {error}") from None


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    return find_spec(package) is not None


def lacking(error: ModuleNotFoundError) -> str | None:
    """Return what to install where a package of one of ablab's extras is missing; None for any other module."""
    package = (error.name or "").partition(".")[0].replace("_", "-")
    lines = [re.match(r"([\w.-]+).*extra == ['\"](\w+)", line) for line in requires("ablab") or ()]
    extras = [found[2] for found in lines if found is not None and found[1].removesuffix("-skinny") == package]
    extra = next((one for one in extras if one != "dev"), None)
    return None if extra is None else f"{package} is not installed; pip install 'ablab[{extra}]' brings it"


def check_text(argument: str) -> None:
    """Refuse bytes that are no text, such as those of a path in Latin-1: no record could hold them."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        written = argument.encode(errors="backslashreplace").decode()
        raise UserError(f"{written}: not UTF-8; allowed: text, and paths of it") from None


def choices(given: object, allowed: Iterable[str], *, likeness: float = 0.6, also: str = "") -> str:
    """Return `allowed: a, b, c; did you mean b?` for an unknown name, with the nearest name if one is near enough.

    `likeness`: similarity from 0.6 to 1 that a proposed name must have; high where another name means another
    experiment. `also`: what is allowed besides, in words.
    """
    names = sorted(allowed)
    # Of very many, those that are most like it, rather than a line that nobody reads.
    shown = names if len(names) <= 60 else sorted(get_close_matches(str(given), names, n=10, cutoff=0.0))
    others = f", and {len(names) - len(shown)} others" if len(shown) < len(names) else ""
    return f"allowed: {', '.join(shown)}{others}{also}{hint(given, names, likeness)}"


def hint(given: object, names: Sequence[str], likeness: float = 0.6) -> str:
    """Return `; did you mean b?` with the name that is most like it; empty where none is near enough."""
    near = [] if _is_number(given) else get_close_matches(str(given), names, n=1, cutoff=likeness)
    return f"; did you mean {near[0]}?" if near else ""


def _is_number(given: object) -> bool:
    """Return whether it is `0.1`, or `layerdrop=0.1`: another number is another experiment, and no misspelling."""
    try:
        float(str(given).rpartition("=")[2])
    except ValueError:
        return False
    return True


def first_error(
    error: "ValidationError", values: Mapping[str, Any], prefix: str = "", known: Iterable[str] = ()
) -> str:
    """Return the first error in the order of `values` as one line: `key=value: what is allowed`.

    `known`: keys that `values` may have, of which the nearest is proposed for an unknown one.
    """
    order = {key: number for number, key in enumerate(values)}
    details = error.errors()
    # A key that is unknown is mostly the one that is missing, misspelt: the user can find it.
    details = [detail for detail in details if detail["type"] == "extra_forbidden"] or details
    detail = min(details, key=lambda detail: order.get(str([*detail["loc"], ""][0]), len(order)))
    message = detail["msg"]
    for opening in ("Value error, ", "Input should be ", "String should have "):
        message = message.removeprefix(opening)
    if not detail["loc"]:  # of the whole, which names its keys itself
        return message
    key = prefix + ".".join(map(str, _keys(detail, values)))
    if detail["type"] == "string_type":
        message = "text" if detail["input"] is None else "text, which in YAML needs quotes here"
    if detail["type"] == "missing":
        return f"{key}: missing; the YAML file must set it"
    if detail["type"] == "extra_forbidden":
        near = hint(key, sorted(known)) if len(detail["loc"]) == 1 else ""
        return f"{key}={_short(detail['input'])}: no such key for this option{near}"
    if detail["type"] == "too_short":
        least = detail["ctx"]["min_length"]
        message = f"at least {least} item{'s' * (least != 1)}"
    message = PLAINLY.get(detail["type"], message)
    allowed = message if message.startswith("allowed") else f"allowed: {message}"
    given = "null" if detail["input"] is None else _short(detail["input"])
    near = hint(given, re.findall(r"'([^']*)'", message)) if detail["type"] == "literal_error" else ""
    return f"{key}={given}: {allowed}{near}"


PLAINLY = {
    **dict.fromkeys(("dict_type", "mapping_type", "model_type"), "names with values, such as {name: value}"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true, false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "list_type": "a list, such as [a, b]",
}
"""What is allowed, by the kind of error that pydantic finds, in the words of this project."""

ABSENT = object()


def _keys(detail: "ErrorDetails", values: object) -> Iterator[str | int]:
    """Yield the parts of an error's place that a user wrote; pydantic adds the member of a union that it tried."""
    first, *others = detail["loc"]
    yield first
    here = _at(values, first)
    for number, part in enumerate(others, 1):
        is_missing = detail["type"] == "missing" and number == len(others)
        if isinstance(part, str) and here is not ABSENT and _at(here, part) is ABSENT and not is_missing:
            continue
        yield part
        here = _at(here, part)


def _at(values: object, part: str | int) -> object:
    """Return the value at a key or index, or ABSENT."""
    if isinstance(values, Mapping):
        return values.get(part, ABSENT)
    if isinstance(part, int) and isinstance(values, list | tuple) and part < len(values):
        return values[part]  # type: ignore[no-any-return]
    return ABSENT


def _short(value: object) -> str:
    """Return a value as it was given, or how it begins where it is long."""
    text = str(value)
    return text if len(text) <= MOST_REPEATED else f"{text[:MOST_REPEATED]}..."


MOST_REPEATED = 120
"""Characters of a value that a message repeats."""


def reason(error: "ValidationError") -> str:
    """Return the first error in a file and its location."""
    first = error.errors()[0]
    return ": ".join(part for part in (".".join(map(str, first["loc"])), first["msg"]) if part)
