"""Garbage collection, paused while much is read that lives to the end."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection while the block runs.

    Records are millions of small lists that live to the end: searching them for garbage is useless, and takes a third
    of the time with a thousand records.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
