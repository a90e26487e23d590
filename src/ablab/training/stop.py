"""Ctrl-C and SIGTERM, while there is something to save."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def graceful_stop(ask_to_stop: Callable[[], None]) -> Iterator[None]:
    """Within the block the first Ctrl-C or SIGTERM calls `ask_to_stop`; the second ends at once."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread alone
        return

    def ask(received: int, frame: object) -> None:
        ask_to_stop()
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before: dict[int, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.getsignal(number)
        signal.signal(number, ask)
    try:
        yield
    finally:
        restore()
