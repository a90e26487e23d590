"""One run in a process of its own, forked from a server that has imported the heavy libraries."""

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ablab.exits import FAILED
from ablab.launching.task import perform

PRELOADED = ["ablab.complete", "ablab.launching.child", "ablab.config.values"]
"""What the server imports once for all runs."""


def work(words: Sequence[str], log: str, environment: Mapping[str, str]) -> None:
    """Compose, run, and exit with a code that tells; all output goes into the log."""
    os.setpgid(0, 0)  # the terminal's Ctrl-C is for the launcher, which passes it on
    # Whoever started the sweep may have told it to ignore them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.update(environment)
    try:
        into(log)
    except OSError:
        sys.exit(FAILED)
    _end_with(os.getppid())
    sys.exit(perform(words, log))


def into(log: str) -> None:
    """Standard output and error, of libraries in C too, into one file."""
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)


def _end_with(parent: int) -> None:
    """A run must not outlive its launcher unseen: when the server goes, it stops as by Ctrl-C, with a checkpoint."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, name="parent", daemon=True).start()
