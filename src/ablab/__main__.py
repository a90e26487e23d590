"""The command `ablab`, also `python -m ablab`."""

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType


def _stopped(number: int, frame: FrameType | None) -> None:
    """Say so and end: nothing has begun, and an error raised amid imports has a traceback, or is swallowed."""
    os.write(2, b"stopped\n")
    os._exit(130)  # as of `ablab.errors.INTERRUPTED`, which is not imported yet


def main(arguments: Sequence[str] | None = None) -> int:
    """Import the command line, which Ctrl-C ends in one line, and run one verb; return its exit code."""
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not below nohup
    if is_heard:
        signal.signal(signal.SIGINT, _stopped)
    from ablab.commands.cli import main as verb

    if is_heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return verb(arguments)


if __name__ == "__main__":
    sys.exit(main())
