"""The import of a part, which only the user's own configuration can have named, and its construction."""

import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ablab.code.find import Part, as_now
from ablab.code.modules import Folder
from ablab.errors import UserError


def load(part: Part) -> Any:
    """Import a part's module and return the part; UserError if it cannot be imported, or is not what was planned."""
    name, module = part.target.rpartition(".")[2], part.target.rpartition(".")[0]
    folder = part.package.folder
    # Last: a file of the study must not stand in for a library that is imported later.
    if isinstance(part.package, Folder) and str(folder) not in sys.path:
        sys.path.append(str(folder))
    is_new = module not in sys.modules
    try:
        loaded = getattr(import_module(module), name)
    except (Exception, SystemExit) as error:  # a script without a guard may end the process
        reason = " ".join(str(error).split())
        raise UserError(f"{part.target}: cannot be imported ({type(error).__name__}: {reason})") from error
    if not part.is_own:
        _check_origins(part, {module, *(key.module.partition(".")[0] for key in part.definitions)})
        if is_new and as_now(part).code != part.code:
            raise UserError(f"{part.target}: {part.file} was edited after it was read; type the line again")
    return loaded


def _check_origins(part: Part, modules: Iterable[str]) -> None:
    """Raise UserError where Python has another module of this name, such as a helper of another study."""
    for name in sorted(modules):
        expected, there = part.package.file_of(name), sys.modules.get(name)
        spec = find_spec(name) if there is None else there.__spec__
        origin = spec.origin if spec is not None else getattr(there, "__file__", None)
        if expected is not None and origin is not None and Path(origin).resolve() != expected.resolve():
            raise UserError(
                f"{part.target}: Python imports {name} from {origin}, not from {expected}; "
                "allowed: a name that no other module has"
            )


def failure_of(error: Exception, parts: Iterable[Part]) -> str:
    """Return an error in one line, with the place in the parts' own source that raised it, if one did."""
    place = place_of(error, parts)
    return f"{'' if place is None else f'{place}: '}{type(error).__name__}: {' '.join(str(error).split())}"


def as_error(left: SystemExit) -> RuntimeError:
    """Return an end of the process that a part asked for as an error of its own: 0 would pass for success."""
    return RuntimeError(f"sys.exit({left.code!r})").with_traceback(left.__traceback__)


def place_of(error: Exception, parts: Iterable[Part]) -> str | None:
    """Return the last place in the parts' own source on an error's way, such as `parts.py, line 12`, or None."""
    files = {str(file) for part in parts for file in part.sources().values()}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else None


def construct(part: Part, values: Mapping[str, Any], makers: Mapping[str, Callable[[], Any]] | None = None) -> Any:
    """Construct a part; of a function, return the function with all that it is handed already given.

    It is handed what it names of `values`, and of `makers`, which are called only for a part that asks for them.
    """
    asked = part.signature.parameters
    handed = {name: value for name, value in values.items() if name in asked}
    handed |= {name: maker() for name, maker in (makers or {}).items() if name in asked}
    found = load(part)
    return found(**handed) if part.signature.is_class else partial(found, **handed)
