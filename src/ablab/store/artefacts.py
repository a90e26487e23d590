"""Artefacts of a run: the data behind each picture, as series or matrices. Plotting code depends on the kind alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, model_validator

from ablab.errors import UserError
from ablab.files import read_json, write_json
from ablab.store.records import Strict

ARTEFACT_SCHEMA: Literal[1] = 1


class Axis(Strict):
    """An axis of an artefact. `labels` names its places where they are not quantities."""

    title: str
    labels: list[str] = Field(default_factory=list)


class Trace(Strict):
    """The points of one line. `names` labels the places along x where they are not quantities."""

    label: str
    x: list[float]
    y: list[float]
    names: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _paired(self) -> "Trace":
        if len(self.x) != len(self.y) or (self.names and len(self.names) != len(self.x)):
            raise ValueError(f"{self.label}: {len(self.x)} x, {len(self.y)} y, {len(self.names)} names")
        return self


class Slice(Strict):
    """One of several matrices that share their rows and columns.

    `row`, `column`: its place in a picture of small multiples, such as layer 2 and head 3; empty where it has none.
    `of_one_run`: it has no identity across runs (head 3 of one run does not correspond to head 3 of another), so a
    comparison shows that of one seed, not a mean. `cells`: a text for each cell, or empty.
    """

    label: str
    values: list[list[float]]
    row: str = ""
    column: str = ""
    of_one_run: bool = False
    cells: list[list[str]] = Field(default_factory=list)


class _Artefact(Strict):
    """Fields that every kind of artefact has.

    `section`: the heading under which a report sets it beside the same artefact of other runs; None keeps it out of
    reports. `order`: its place in that section. `about`: its definition. `settings`: the inputs of the computation;
    only artefacts with equal settings are compared. `provenance`: code digest and time.
    """

    schema_version: Literal[1] = ARTEFACT_SCHEMA
    title: str
    section: str | None = None
    order: int = 0
    about: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    provenance: dict[str, str] = Field(default_factory=dict)


class SeriesArtefact(_Artefact):
    """Lines that share one x axis."""

    kind: Literal["series"] = "series"
    x: Axis
    y: Axis
    series: list[Trace]


class MatrixArtefact(_Artefact):
    """A matrix with rows on `y` and columns on `x`, in one or several slices; the first slice is shown by default.

    `value` names the quantity in the cells. `interchangeable`: columns have no identity across runs (head 3 of one run
    does not correspond to head 3 of another), so a comparison of runs must sort each row first.
    """

    kind: Literal["matrix"] = "matrix"
    x: Axis
    y: Axis
    value: str
    interchangeable: bool = False
    slices: Annotated[list[Slice], Field(min_length=1)]

    @model_validator(mode="after")
    def _shaped(self) -> "MatrixArtefact":
        rows, columns = len(self.y.labels), len(self.x.labels)
        for part in self.slices:
            for what in (part.values, part.cells) if part.cells else (part.values,):
                if [len(row) for row in what] != [columns] * rows:
                    raise ValueError(f"{part.label}: its values are not {rows} rows of {columns}")
        return self


Artefact = SeriesArtefact | MatrixArtefact

AnyArtefact = Annotated[Artefact, Field(discriminator="kind")]
"""An artefact as it is read: its `kind` says which it is."""

_READER: TypeAdapter[Artefact] = TypeAdapter(AnyArtefact)


def write_artefact(path: Path, artefact: Artefact) -> None:
    """Write the artefact atomically."""
    write_json(path, artefact.model_dump())


def comparable_artefacts(folder: Path) -> Mapping[str, Artefact]:
    """Return the artefacts that reports compare across runs, by file name without suffix.

    Raise UserError if a file is damaged.
    """
    found = {}
    for path in sorted(folder.glob("*.json")):
        try:
            content = read_json(path)
            if content.get("section") is not None:
                found[path.stem] = _READER.validate_python(content)
        except (ValueError, AttributeError) as error:
            raise UserError(
                f"{path}: cannot be read as an artefact of this version ({str(error).splitlines()[0]})"
            ) from None
    return found
