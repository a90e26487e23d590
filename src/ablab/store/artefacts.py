"""Artefacts of a run: series, matrices, tables and pictures. What draws them depends on the kind alone."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter, WithJsonSchema, model_validator

from ablab.errors import UserError
from ablab.files import read_json, sha256, write_json
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


def _is_cell(value: Any) -> Any:
    is_finite = isinstance(value, float) and math.isfinite(value)
    if not (value is None or isinstance(value, str | int) or is_finite):
        raise ValueError("allowed: text, a finite number, true, false or null")
    return value


Cell = Annotated[
    Any, AfterValidator(_is_cell), WithJsonSchema({"type": ["string", "number", "boolean", "null"], "title": "Cell"})
]
"""One cell of a table. A union of types would be told once for each of them where it is wrong."""


class TableArtefact(_Artefact):
    """Rows of words and numbers, one cell for each column."""

    kind: Literal["table"] = "table"
    columns: Annotated[list[str], Field(min_length=1)]
    rows: list[list[Cell]]

    @model_validator(mode="after")
    def _shaped(self) -> "TableArtefact":
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number} has {len(row)} cells, and there are {len(self.columns)} columns")
        return self


class PictureFile(_Artefact):
    """A picture as a program gives it: a PNG or SVG file, by its place in the folder of the run's program."""

    kind: Literal["picture"] = "picture"
    file: str


class PictureArtefact(PictureFile):
    """A picture as a store keeps it: `file` lies beside the artefact; `sha256`: of its bytes."""

    file: Annotated[str, Field(pattern=r"^\w+\.(png|svg)$")]
    sha256: str

    def check(self, folder: Path) -> None:
        """Raise ValueError where the file is gone, or is another than the one that was kept."""
        path = folder / self.file
        if not path.is_file():
            raise ValueError(f"{self.file} is gone")
        if sha256(path) != self.sha256:
            raise ValueError(f"{self.file} is another picture than the one that was kept")


Artefact = SeriesArtefact | MatrixArtefact | TableArtefact | PictureArtefact

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
    found: dict[str, Artefact] = {}
    for path in sorted(folder.glob("[!.]*.json")):
        try:
            content = read_json(path)
            if content.get("section") is not None:
                found[path.stem] = artefact = _READER.validate_python(content)
                if isinstance(artefact, PictureArtefact):
                    artefact.check(folder)
        except (ValueError, AttributeError) as error:
            raise UserError(
                f"{path}: cannot be read as an artefact of this version ({str(error).splitlines()[0]})"
            ) from None
    return found
