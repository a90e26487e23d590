"""Signals that ask a run to stop: the first lets it save, a second one ends it at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

HANG_UP: int | None = getattr(signal, "SIGHUP", None)
"""The signal sent when a terminal or a connection closes; None on Windows."""


@contextmanager
def graceful_stop(ask_to_stop: Callable[[], None]) -> Iterator[None]:
    """Within the block the first Ctrl-C, SIGTERM or SIGHUP calls `ask_to_stop`; a second one ends at once.

    A second SIGHUP is ignored: a shell passes the signal on, and then the system sends another. Under nohup, SIGHUP
    stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread alone
        return

    def ask(received: int, frame: object) -> None:
        ask_to_stop()
        restore()
        if HANG_UP in before:
            signal.signal(HANG_UP, signal.SIG_IGN)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if HANG_UP is not None and signal.getsignal(HANG_UP) is not signal.SIG_IGN:
        before[HANG_UP] = signal.getsignal(HANG_UP)
    for number in before:
        signal.signal(number, ask)
    try:
        yield
    finally:
        restore()
