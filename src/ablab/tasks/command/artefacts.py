"""Artefacts that a command gives in its result: those of the store, with what reports need of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel

from ablab.store.artefacts import (
    AnyArtefact,
    Artefact,
    Axis,
    MatrixArtefact,
    SeriesArtefact,
    Slice,
    Trace,
    write_artefact,
)

LONGEST = 100
"""Characters of the longest key, which is the name of a file."""

KINDS: Mapping[str, type[BaseModel]] = {"series": SeriesArtefact, "matrix": MatrixArtefact}

PARTS: Mapping[str, type[BaseModel]] = {"x": Axis, "y": Axis, "series": Trace, "slices": Slice}
"""What the fields of an artefact consist of."""


def _is_key(key: str) -> str:
    if not key.isidentifier() or not key.isascii() or len(key) > LONGEST:
        raise ValueError(f"allowed: a name of letters, digits and _, not a digit first, of at most {LONGEST}")
    return key


def _is_drawn(artefact: Artefact) -> Artefact:
    """Raise ValueError for one that a report could not draw whole: it tells lines and slices apart by their labels."""
    parts = artefact.series if isinstance(artefact, SeriesArtefact) else artefact.slices
    if len({part.label for part in parts}) < len(parts):
        raise ValueError("allowed: another label for each of its parts")
    if isinstance(artefact, MatrixArtefact):
        if not artefact.x.labels or not artefact.y.labels:
            raise ValueError("allowed: labels of x and y, one for each column and row")
    elif not parts or not all(trace.x for trace in artefact.series):
        raise ValueError("allowed: at least one line, each with at least one point")
    return artefact


Artefacts = dict[Annotated[str, AfterValidator(_is_key)], Annotated[AnyArtefact, AfterValidator(_is_drawn)]]
"""By the names of their files."""


def write_artefacts(folder: Path, artefacts: Mapping[str, Artefact]) -> None:
    """Write the artefacts of a run, and remove those that an attempt before it has left."""
    for path in folder.glob("*.json"):
        if path.stem not in artefacts:
            path.unlink()
    for key, artefact in artefacts.items():
        write_artefact(folder / f"{key}.json", artefact)
