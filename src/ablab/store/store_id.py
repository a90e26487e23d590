"""The id of a store: trackers tell by it one recipe's runs of two stores apart, such as those of two colleagues."""

import secrets
from pathlib import Path

from filelock import FileLock

from ablab.errors import UserError
from ablab.files import read_json, write_json

STORE = "store.json"
"""File with the id, at the top of a store. It is copied and moved with the store."""

PATIENCE = 30.0
"""Seconds to wait for another process that draws the id; a tracker does without one then."""


def store_id(store: Path) -> str:
    """Return the store's id, 8 hex digits, drawn once.

    Raises UserError if its file cannot be read, and OSError if it cannot be written.
    """
    path = store / STORE
    if not path.exists():
        store.mkdir(parents=True, exist_ok=True)
        with FileLock(store / ".store.lock", timeout=PATIENCE):  # of launchers that start at once, one draws
            if not path.exists():
                write_json(path, {"id": secrets.token_hex(4)})
    content = read_json(path)
    found = content.get("id") if isinstance(content, dict) else None
    if not isinstance(found, str) or not found.isalnum():
        raise UserError(f"{path}: names no store; removed, it is made anew, with another id")
    return found
