"""Artefacts of a run: what a picture shows, as data. Who draws them knows the kinds and no names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, model_validator

from ablab.errors import UserError
from ablab.files import read_json, write_json
from ablab.store.records import Strict

ARTEFACT_SCHEMA: Literal[1] = 1


class Axis(Strict):
    """`labels`: what stands at each place, where that is no quantity."""

    title: str
    labels: list[str] = Field(default_factory=list)


class Trace(Strict):
    """Points of one line. `names`: of the places along x, where they are no quantities."""

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
    """One matrix of several with the same rows and columns."""

    label: str
    values: list[list[float]]


class _Artefact(Strict):
    """What every kind has.

    `section`: the heading under which a report lays it beside those of other runs, `order`: its place there; None: it
    is its run's alone. `about`: how it is defined. `settings`: what it was computed from; only equal ones are compared.
    `provenance`: code and clock.
    """

    schema_version: Literal[1] = ARTEFACT_SCHEMA
    title: str
    section: str | None = None
    order: int = 0
    about: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    provenance: dict[str, str] = Field(default_factory=dict)


class SeriesArtefact(_Artefact):
    """Lines over one x."""

    kind: Literal["series"] = "series"
    x: Axis
    y: Axis
    series: list[Trace]


class MatrixArtefact(_Artefact):
    """Values by row (`y`) and column (`x`), `value` says of what; the first slice is the one to show first.

    `interchangeable`: the columns of a row have no identity beyond it, as head 3 of one run has nothing to do with head
    3 of another: who compares runs must sort each row first.
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
            if [len(row) for row in part.values] != [columns] * rows:
                raise ValueError(f"{part.label}: its values are not {rows} rows of {columns}")
        return self


Artefact = SeriesArtefact | MatrixArtefact

_READER: TypeAdapter[Artefact] = TypeAdapter(Annotated[Artefact, Field(discriminator="kind")])


def write_artefact(path: Path, artefact: Artefact) -> None:
    """Replace it at once."""
    write_json(path, artefact.model_dump())


def comparable_artefacts(folder: Path) -> Mapping[str, Artefact]:
    """Those that reports lay side by side, by the names of their files. UserError when one is damaged."""
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
