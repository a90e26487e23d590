"""What is slow to make, made once for all processes of the tests, each of which gets a copy to write into."""

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from filelock import FileLock

T = TypeVar("T")


def made_once(name: str, make: Callable[[Path], T], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, T]:
    """A copy of the folder that `make` fills, and what `make` returned, whichever process called it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    original, returned = shared / f"{name}-original", shared / f"{name}.pickle"
    with FileLock(shared / f"{name}.lock"):
        if not returned.exists():
            original.mkdir()
            returned.write_bytes(pickle.dumps(make(original)))
    copy = shutil.copytree(original, tmp_path_factory.mktemp(name), dirs_exist_ok=True)
    return copy, pickle.loads(returned.read_bytes())
