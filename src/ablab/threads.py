"""How PyTorch's threads wait for each other; to be settled before torch is imported."""

import os

SPIN = "5000"
"""Turns that a thread spins at a barrier before it sleeps. GNU OpenMP's own default is 300,000: as long as a
thread that another program has displaced takes to come back, so that one busy neighbour slowed training tenfold.
"""


def wait_politely() -> None:
    """Sleep soon at barriers, unless the environment says how to wait."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)
