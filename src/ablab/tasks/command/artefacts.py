"""Artefacts that a command gives in its result: those of the store, with what reports need of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from ablab.files import sha256, write_bytes
from ablab.store.artefacts import (
    Axis,
    MatrixArtefact,
    PictureArtefact,
    PictureFile,
    SeriesArtefact,
    Slice,
    TableArtefact,
    Trace,
    write_artefact,
)
from ablab.tasks.command.pictures import read_picture

LONGEST = 100
"""Characters of the longest key, which is the name of a file."""

SECTION = "Artefacts"
"""The heading under which reports draw those that name none."""

MOST_CELLS = 10_000
"""Of the largest table: a page holds one for each arm."""

KINDS: Mapping[str, type[BaseModel]] = {
    "series": SeriesArtefact,
    "matrix": MatrixArtefact,
    "table": TableArtefact,
    "picture": PictureFile,
}

PARTS: Mapping[str, type[BaseModel]] = {"x": Axis, "y": Axis, "series": Trace, "slices": Slice}
"""What the fields of an artefact consist of."""

GivenArtefact = SeriesArtefact | MatrixArtefact | TableArtefact | PictureFile


def _is_key(key: str) -> str:
    if not key.isidentifier() or not key.isascii() or len(key) > LONGEST:
        raise ValueError(f"allowed: a name of letters, digits and _, not a digit first, of at most {LONGEST}")
    return key


def _is_drawn(artefact: GivenArtefact) -> GivenArtefact:
    """Raise ValueError for one that a report could not draw whole: it tells parts apart by their labels."""
    labels = _labels(artefact)
    if len({*labels}) < len(labels):
        raise ValueError("allowed: another label for each of its parts")
    if isinstance(artefact, MatrixArtefact) and not (artefact.x.labels and artefact.y.labels):
        raise ValueError("allowed: labels of x and y, one for each column and row")
    if isinstance(artefact, SeriesArtefact) and not (labels and all(trace.x for trace in artefact.series)):
        raise ValueError("allowed: at least one line, each with at least one point")
    if isinstance(artefact, TableArtefact) and not 0 < len(artefact.rows) * len(labels) <= MOST_CELLS:
        raise ValueError(f"allowed: at least one row, and at most {MOST_CELLS:,} cells")
    return artefact


def _labels(artefact: GivenArtefact) -> list[str]:
    if isinstance(artefact, TableArtefact):
        return artefact.columns
    if isinstance(artefact, SeriesArtefact):
        return [trace.label for trace in artefact.series]
    return [part.label for part in artefact.slices] if isinstance(artefact, MatrixArtefact) else []


Artefacts = dict[
    Annotated[str, AfterValidator(_is_key)],
    Annotated[GivenArtefact, Field(discriminator="kind"), AfterValidator(_is_drawn)],
]
"""By the names of their files."""


def write_artefacts(folder: Path, artefacts: Mapping[str, GivenArtefact], source: Path) -> None:
    """Write the artefacts of a run, with pictures from below `source`; remove those that an attempt before has left."""
    written = set()
    for key, given in artefacts.items():
        artefact = given if given.section else given.model_copy(update={"section": SECTION})
        if isinstance(artefact, PictureFile):
            artefact, picture = _kept(folder, key, artefact, source)
            written.add(picture)
        path = folder / f"{key}.json"
        write_artefact(path, artefact)
        written.add(path)
    for path in {*folder.glob("*.*")} - written:
        path.unlink()


def _kept(folder: Path, key: str, given: PictureFile, source: Path) -> tuple[PictureArtefact, Path]:
    """Copy a picture beside its artefact, and return both."""
    content, suffix = read_picture(source, given.file)
    path = folder / f"{key}{suffix}"
    write_bytes(path, content)
    return PictureArtefact(**given.model_dump() | {"file": path.name, "sha256": sha256(path)}), path
