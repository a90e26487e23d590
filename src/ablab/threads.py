"""This process: its CPU cores, how its threads wait, which must be set before torch is imported, and its place under
torchrun."""

import os

SPIN = "5000"
"""Turns that a thread spins at a barrier before it sleeps. GNU OpenMP's own default is far longer: with it, one busy
neighbour on two cores slowed training tenfold.
"""


def wait_politely() -> None:
    """Make threads sleep soon at barriers, unless the environment already sets a wait policy."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def place() -> tuple[int, int]:
    """Return this process's rank among how many, as torchrun says, or (0, 0) without torchrun.

    One of its variables alone may stay behind from another program.
    """
    if os.environ.keys() >= {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return 0, 0
