"""The place of this process among those that torchrun has started."""

import os


def place() -> tuple[int, int]:
    """Return this process's rank among how many, as torchrun says, or (0, 0) without torchrun.

    One of its variables alone may stay behind from another program.
    """
    if os.environ.keys() >= {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return 0, 0
