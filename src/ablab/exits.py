"""Exit codes of all commands, and of the processes of a sweep."""

DONE = 0
FAILED = 1
BAD_INPUT = 2
BUSY = 3
"""Another process is at the run; only processes of a sweep end with it."""
STOPPED = 4
"""A search has stopped the run as a poor trial; only processes of a sweep end with it."""
UNSUITABLE = 5
"""The machine lacks what the words ask for, such as a GPU; only processes of a sweep end with it."""
INTERRUPTED = 130
