"""Laws: a sentence, and a check that says what breaks it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor


class BrokenError(Exception):
    """A law does not hold; the message says where, and what was found."""


@dataclass(frozen=True)
class Law:
    """What must hold of a configuration's parts. `check` raises BrokenError if it does not."""

    sentence: str
    check: Callable[[Any], None]


def require(holds: bool, why: str) -> None:
    """Raise BrokenError with the reason unless the condition holds."""
    if not holds:
        raise BrokenError(why)


def in_another_process(program: str, words: Sequence[str]) -> Any:
    """Return what a program prints last, as JSON, in a process where sets and hashes of texts have another order."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    command, environment = [sys.executable, "-c", program, *words], {**os.environ, "PYTHONHASHSEED": seed}
    there = subprocess.run(command, env=environment, capture_output=True, check=False)
    require(there.returncode == 0, f"a second process cannot do it: {there.stderr.decode()[-300:].strip()}")
    return json.loads(there.stdout.splitlines()[-1])


def require_close(found: Tensor, expected: Tensor, tolerance: float, what: str) -> None:
    """Raise BrokenError if two tensors differ by more than `tolerance` anywhere, or are no numbers."""
    difference = (found - expected).abs().max().item()
    require(difference <= tolerance, f"{what} differs by {difference:.2g}")


def require_equal(found: Tensor, expected: Tensor, what: str) -> None:
    """Raise BrokenError unless two tensors are equal bit for bit."""
    if not found.equal(expected):
        difference = (found.double() - expected.double()).abs().max().item()
        raise BrokenError(f"{what} differs by {difference:.2g}, and must be equal bit for bit")
