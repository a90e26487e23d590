"""The last failure of a run: a file in its folder, and the kinds of errors that people tell apart."""

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from ablab.errors import LostError, OtherCodeError
from ablab.files import write_json
from ablab.store.records import Strict, now

Kind = Literal["memory", "killed", "timeout", "refused", "error"]


class Failure(Strict):
    """The last failure of a run.

    `kind`: memory (of a device or of the machine), killed (by a signal), timeout (of a queue), refused (the run began
    under other code), or error. `line`: the last line of the error.
    """

    kind: Kind
    line: str
    attempts: int
    log: str | None
    ended: str


def read_failure(path: Path) -> Failure | None:
    """Return the recorded failure, or None."""
    try:
        return Failure.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def write_failure(path: Path, kind: Kind, line: str, log: str | None) -> Failure:
    """Record one more failed attempt, which ends now."""
    before = read_failure(path)
    failure = Failure(kind=kind, line=line, attempts=1 + (before.attempts if before else 0), log=log, ended=now())
    write_json(path, failure.model_dump())
    return failure


def kind_of(error: BaseException) -> Kind:
    """Classify an error. PyTorch reports exhausted memory in several ways, some of them only by the message."""
    message = str(error)
    if isinstance(error, OtherCodeError):
        return "refused"
    if isinstance(error, LostError) and "was killed by" in message:
        return "killed"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "memory"
    if "DefaultCPUAllocator" in message or "out of memory" in message:
        return "memory"
    return "error"
