"""The name of the running program, as the user types it."""

import sys
from pathlib import Path

SCRIPTS = ("train", "study", "report", "prune", "translate")
"""Verbs with a script at the root of a checkout."""


def is_script() -> bool:
    """Return whether one of the scripts of a checkout was started, and not the installed command."""
    return Path(sys.argv[0]).name in {f"{verb}.py" for verb in SCRIPTS}


def program(verb: str) -> str:
    """Return `python train.py` where the scripts of a checkout are in use, else `ablab train`."""
    return f"python {verb}.py" if is_script() else f"ablab {verb}"
