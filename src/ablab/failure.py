"""How a run failed, written down for the next command: a class, a line, and how often it was tried."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ablab.errors import LostError, OtherCodeError
from ablab.files import write_json

Kind = Literal["memory", "killed", "timeout", "refused", "error"]


class Failure(BaseModel):
    """`kind`: memory (of a device or of the machine), killed (by a signal), timeout (of a queue), refused (it began
    under other code), or error. `line`: the last of the error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    line: str
    attempts: int
    log: str | None
    ended: str


def read_failure(path: Path) -> Failure | None:
    """What is on record, if anything is."""
    try:
        return Failure.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def write_failure(path: Path, kind: Kind, line: str, log: str | None, ended: str) -> Failure:
    """One more attempt has failed."""
    before = read_failure(path)
    failure = Failure(kind=kind, line=line, attempts=1 + (before.attempts if before else 0), log=log, ended=ended)
    write_json(path, failure.model_dump())
    return failure


def kind_of(error: BaseException) -> Kind:
    """Its class. PyTorch says that memory is out in several ways, not all of them by type."""
    said = str(error)
    if isinstance(error, OtherCodeError):
        return "refused"
    if isinstance(error, LostError) and "was killed by" in said:
        return "killed"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "memory"
    if "DefaultCPUAllocator" in said or "out of memory" in said:
        return "memory"
    return "error"
