"""The code digest: a hash of the definitions that can affect numbers or rounding, wherever they stand.

A stage reaches, from the roots of a recipe, every definition of the package that a reached definition names, including
whole classes; imports are followed. Moving a definition, renaming a module, changing a comment or editing what the
recipe does not use leaves the digest unchanged.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import ablab
from ablab.code.definitions import Sources, code_of, reached
from ablab.code.folders import shipped_targets
from ablab.code.modules import Package
from ablab.code.roots import CHOSEN, GROUPS, OUTSIDE, SILENT, UNUSED, Stage, roots
from ablab.files import json_digest

VERSION = "2"
"""What a digest is made of. Digests of two versions cannot be compared; those of the first bear no version."""


@dataclass(frozen=True)
class Code:
    """The code behind a stage. `digest`: the version, a colon, and 12 hex digits.

    `components`: such a digest for the code that all recipes share, `spine`, and for each part, such as
    `norm=scalenorm`. `definitions`: 8 hex digits by the name of each function, method, class or constant, from `named`.
    """

    digest: str
    components: Mapping[str, str] = field(default_factory=dict)
    named: Callable[[], Mapping[str, str]] = field(default=dict, repr=False, compare=False)

    @property
    def definitions(self) -> Mapping[str, str]:
        """The digests by definition, made when they are asked for: a plan of many arms does not need them."""
        return self.named()


def code(stage: Stage, recipe: Mapping[str, Any]) -> Code:
    """Return the code of this package behind a stage of a recipe, as it was on disk when `read_sources` was called."""
    return code_from(read_sources(), stage, recipe)


def code_from(sources: Sources, stage: Stage, recipe: Mapping[str, Any]) -> Code:
    """Return the code of these sources behind a stage of a recipe."""
    return _code(sources, stage, tuple(roots(stage, recipe, sources).items()))


def code_digest(stage: Stage, recipe: Mapping[str, Any]) -> str:
    return code(stage, recipe).digest


def version_of(digest: str) -> str:
    version, colon, _ = digest.partition(":")
    return version if colon else "1"


@cache
def read_sources() -> Sources:
    """Read this package's sources and options. A server of processes calls it early, since it outlives their edits."""
    for group in {group for groups in GROUPS.values() for group in groups}:
        shipped_targets(group)
    return Sources(Package(Path(ablab.__file__).parent).as_now(), OUTSIDE, SILENT, registries=CHOSEN)


@cache
def _code(sources: Sources, stage: Stage, roots_of: Sequence[tuple[str, Sequence[str]]]) -> Code:
    components = {name: _component(sources, stage, tuple(each)) for name, each in roots_of}
    return Code(f"{VERSION}:{json_digest(components, 12)}", components, partial(_named, sources, stage, roots_of))


@cache
def _named(sources: Sources, stage: Stage, roots_of: Sequence[tuple[str, Sequence[str]]]) -> Mapping[str, str]:
    return code_of(reached(sources, [root for _, each in roots_of for root in each], UNUSED.get(stage, ()))).definitions


@cache
def _component(sources: Sources, stage: Stage, roots_of: Sequence[str]) -> str:
    return f"{VERSION}:{code_of(reached(sources, roots_of, UNUSED.get(stage, ()))).digest}"
