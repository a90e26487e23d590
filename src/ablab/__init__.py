"""Ablation studies with honest statistics: of Transformers in translation, and of any program."""

import sys
from importlib import import_module
from typing import Any

from ablab.former import Finder

__version__ = "0.1.0"

__all__ = ["Error", "__version__", "judge", "open"]

sys.meta_path.insert(0, Finder())  # first: the path of a package would find a second copy of its modules


def __dir__() -> list[str]:
    """Return the names that are imported on demand, too, which completion asks for."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Return `open` or `Error` of `ablab.api`, or `judge`, which are imported only when one of them is asked for."""
    if name == "judge":
        return import_module("ablab.judge")
    if name not in ("Error", "open"):
        raise AttributeError(f"module 'ablab' has no attribute {name!r}")
    return getattr(import_module("ablab.api"), name)
