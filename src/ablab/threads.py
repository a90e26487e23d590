"""How PyTorch's threads wait for each other; to be settled before torch is imported."""

import os

SPIN = "5000"
"""Turns that a thread spins at a barrier before it sleeps. With GNU OpenMP's own default, far longer, one busy
neighbour on two cores slowed training tenfold.
"""


def wait_politely() -> None:
    """Sleep soon at barriers, unless the environment says how to wait."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
