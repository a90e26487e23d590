"""The code digest: a hash of the definitions that can affect numbers or rounding, wherever they stand.

A stage reaches, from its roots, every definition of the package that a reached definition names, including whole
classes and the entries of registries; imports are followed. Moving a definition, renaming a module, changing a comment
or editing unreached code leaves the digest unchanged.
"""

from functools import cache
from pathlib import Path

import ablab
from ablab.provenance.roots import OUTSIDE, SILENT, UNUSED, Stage, roots
from ablab.syntax.definitions import Code, Sources, code_of, reached
from ablab.syntax.modules import Package


@cache
def code(stage: Stage) -> Code:
    """Return the digest of this package's sources, as they are on disk at the first call."""
    return code_of(reached(_sources(), roots(stage), UNUSED.get(stage, ())))


def code_digest(stage: Stage = "training") -> str:
    """Return the stage's digest, 12 hex digits."""
    return code(stage).digest


@cache
def _sources() -> Sources:
    return Sources(Package(Path(ablab.__file__).parent), OUTSIDE, SILENT)
