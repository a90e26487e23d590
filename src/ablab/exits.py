"""Exit codes of all commands, and of the processes of a sweep."""

DONE = 0
FAILED = 1
BAD_INPUT = 2
BUSY = 3
"""Another process is at the run; only processes of a sweep end with it."""
INTERRUPTED = 130
