"""The name of the running program, as the user types it."""

import sys
from pathlib import Path


def program(verb: str) -> str:
    """Return `python train.py` where the scripts of a checkout are in use, else `ablab train`."""
    return f"python {verb}.py" if Path(sys.argv[0]).suffix == ".py" else f"ablab {verb}"
