"""The import of a part, which only the user's own configuration can have named."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.parts.find import Part
from ablab.syntax.modules import Folder


def load(part: Part) -> Any:
    """Import a part's module and return the part; UserError if it cannot be imported, or comes from another file."""
    name, module = part.target.rpartition(".")[2], part.target.rpartition(".")[0]
    folder = part.package.folder
    # Last: a file of the study must not stand in for a library that is imported later.
    if isinstance(part.package, Folder) and str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        found = import_module(module)
        loaded = getattr(found, name)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{part.target}: cannot be imported ({type(error).__name__}: {reason})") from error
    expected = part.package.file_of(module)
    if expected is not None and Path(str(found.__file__)).resolve() != expected.resolve():
        raise UserError(
            f"{part.target}: Python imports {module} from {found.__file__}, not from {expected}; "
            "allowed: a name that no other module has"
        )
    return loaded
