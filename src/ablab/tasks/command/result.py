"""The files that a command writes: its result, one JSON object, and lines of JSON on its progress."""

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from ablab.errors import LostError, first_error
from ablab.files import each_once
from ablab.store.artefacts import PictureFile
from ablab.store.records import ToldCost
from ablab.tasks.command.artefacts import KINDS, PARTS, Artefacts, GivenArtefact
from ablab.tasks.command.pictures import read_picture
from ablab.tasks.own import DivergedError
from ablab.tasks.score import LARGEST_SCORE

LARGEST = 512 * 2**20
"""Bytes of the largest result that is read."""

ROUNDED = 0.01
"""By how much a score may differ from the mean of its items, of the largest of these: programs round scores."""

LAST = 4096
"""Bytes by which a file of progress is known again: one that the command began anew has others there."""

Finite = Annotated[float, Field(allow_inf_nan=False)]


def _as_nan(scores: Any) -> Any:
    """Return scores with NaN for what stands for it in JSON of other languages: null of JavaScript, text of R."""
    if not isinstance(scores, Mapping):
        return scores
    return {name: math.nan if value in (None, "NaN", "NA") else value for name, value in scores.items()}


class CommandError(LostError):
    """The command has failed: it gave no result, or one that cannot be read."""


class CurvePoint(BaseModel):
    """A step, and any scores after it."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    __pydantic_extra__: dict[str, float]

    step: Annotated[int, Field(ge=0, le=2**53)]

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, told: Any) -> Any:
        return {**_as_nan(told), "step": told["step"]} if isinstance(told, Mapping) and "step" in told else told

    @property
    def scores(self) -> dict[str, float]:
        return dict(self.__pydantic_extra__)


class CommandResult(BaseModel):
    """What a command writes to {result}. `scores`: by name, each of them a number; one that is declared and not finite
    makes the run diverged, as that status does. `curve`: scores in the course of it. `items`: by score, those of each
    example, whose mean the score is. `cost`: what it says of its own. `artefacts`: by name, what reports draw.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    scores: Annotated[dict[str, float], BeforeValidator(_as_nan)] = {}
    status: Literal["finished", "diverged"] = "finished"
    curve: list[CurvePoint] = []
    items: dict[str, list[Finite]] = {}
    cost: ToldCost | None = None
    artefacts: Artefacts = {}


def read_result(path: Path, declared: Mapping[str, tuple[float, float]]) -> CommandResult:
    """Read a result that has all declared scores, with its pictures beside it. Raises CommandError for any other,
    DivergedError for one that says so or has a declared score that is not finite, or too large to be one.

    `declared`: scores with their bounds.
    """
    if not path.exists():
        raise CommandError("the command ended without a result: it wrote nothing to {result}")
    if not path.is_file():
        raise CommandError(f"{path.name}: no file; allowed: one that the command writes to {{result}}")
    if path.stat().st_size > LARGEST:
        raise CommandError(f"{path.name}: larger than {LARGEST // 2**20} MiB")
    found = _parsed(path.read_bytes(), CommandResult, path.name)
    if found.status == "diverged":
        raise DivergedError("the command says that it diverged")
    check_declared(path.name, found.scores, declared)
    for name in declared:
        if not abs(found.scores[name]) < LARGEST_SCORE:  # nan is not, either
            raise DivergedError(f"{name} is {found.scores[name]}")
        check_bounds(path.name, name, found.scores[name], *declared[name])
    for name, items in found.items.items():
        _check_mean(f"{path.name}: items.{name}", items, found.scores.get(name))
    for key, artefact in found.artefacts.items():
        _check_artefact(f"{path.name}: artefacts.{key}", artefact, path.parent)
    return found


def check_declared(where: str, told: Mapping[str, float], declared: Collection[str]) -> None:
    """Raise CommandError unless all declared scores were told."""
    if lacking := [name for name in declared if name not in told]:
        raise CommandError(f"{where}: scores: {lacking[0]} is missing, and there is {', '.join(told) or 'none'}")


def check_bounds(where: str, name: str, score: float, low: float, high: float) -> None:
    """Raise CommandError for a score beyond the bounds that were declared."""
    if not low <= score <= high:
        raise CommandError(f"{where}: scores.{name}={score:g}: its bounds are {low:g} and {high:g}")


def _check_artefact(where: str, artefact: GivenArtefact, folder: Path) -> None:
    try:
        json.dumps(artefact.settings, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        raise CommandError(f"{where}.settings: allowed: what JSON can hold") from None
    if isinstance(artefact, PictureFile):
        try:
            read_picture(folder, artefact.file)
        except (OSError, ValueError) as error:
            raise CommandError(f"{where}.file={artefact.file}: {error}") from None


def _check_mean(where: str, items: Sequence[float], score: float | None) -> None:
    """Raise CommandError where items are not those of the score: a test over them would be one of something else."""
    if not items or score is None:
        why = "there are none" if score is not None else "there is no score of this name"
        raise CommandError(f"{where}: {why}; allowed: the score of each example, whose mean is the score")
    mean = sum(items) / len(items)
    if math.isfinite(score) and abs(mean - score) > ROUNDED * max(map(abs, items)):
        raise CommandError(
            f"{where}: their mean is {mean:g}, and the score {score:g}; allowed: a mean equal to the score"
        )


One = TypeVar("One", bound=BaseModel)


def _parsed(written: bytes, kind: type[One], where: str) -> One:
    try:
        content: Any = json.loads(written, object_pairs_hook=each_once)  # reads NaN, unlike pydantic
        if b"\\ud" in written.lower():
            _check_text(content, where)
        if not isinstance(content, dict):
            example = '{"step": 100, "loss": 1.5}' if kind is CurvePoint else '{"scores": {"loss": 1.5}}'
            raise CommandError(f"{where}: no object; allowed: such as {example}")
        return kind.model_validate(content, strict=True)  # the models of artefacts, too
    except ValidationError as error:
        raise CommandError(f"{where}: {_fault(error, content, kind)}") from None
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{where}: not readable as JSON ({' '.join(str(error).split())})") from None


def _check_text(content: Any, where: str) -> None:
    """Refuse halves of characters that take two codes in UTF-16: no file can hold them."""
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise CommandError(f"{where}: {half} is half of a character; allowed: text that UTF-8 can hold") from None


def _fault(error: ValidationError, content: dict[str, Any], kind: type[BaseModel]) -> str:
    """Return the first error in words for the author of a program, who has no YAML file to mend."""
    error = _as_written(error)
    details = error.errors()
    found = {detail["type"]: detail for detail in reversed(details)}
    if (unknown := found.get("extra_forbidden")) is not None:  # mostly the one that is missing, misspelt
        allowed = _around(unknown["loc"], content, kind).model_fields
        return f"{'.'.join(map(str, unknown['loc']))}: no such key; allowed: {', '.join(allowed)}"
    if tagless := found.get("union_tag_invalid", found.get("union_tag_not_found")):
        return f"{'.'.join(map(str, tagless['loc']))}.kind: allowed: {', '.join(KINDS)}"
    if (lacking := found.get("missing")) is not None:
        return f"{'.'.join(map(str, lacking['loc']))}: missing"
    is_text = any(detail["type"].startswith(("float", "int")) for detail in details if isinstance(detail["input"], str))
    return first_error(error, content) + (", without quotes" if is_text else "")


IN_JSON: Mapping[str, Literal["allowed: an object", "allowed: text"]] = {
    "model_type": "allowed: an object",
    "model_attributes_type": "allowed: an object",
    "dict_type": "allowed: an object",
    "string_type": "allowed: text",
}
"""What is allowed, by the type of an error, where pydantic speaks of Python."""


def _as_written(error: ValidationError) -> ValidationError:
    """Return the errors at the places that a program wrote: pydantic puts the kind of an artefact after its name."""
    written: list[InitErrorDetails] = []
    for detail in error.errors():
        loc = detail["loc"]
        place = (*loc[:2], *loc[3:]) if loc[0] == "artefacts" else loc
        words = IN_JSON.get(detail["type"])
        kind = detail["type"] if words is None else PydanticCustomError("in_json", words)
        written.append({"type": kind, "loc": place, "input": detail["input"], "ctx": detail.get("ctx", {})})
    return ValidationError.from_exception_data(error.title, written)


def _around(loc: tuple[int | str, ...], content: dict[str, Any], kind: type[BaseModel]) -> type[BaseModel]:
    """Return the model whose keys are those beside the last of a place."""
    if len(loc) == 1:
        return kind
    if loc[0] == "cost":
        return ToldCost
    return KINDS[content["artefacts"][loc[1]]["kind"]] if len(loc) == 3 else PARTS[str(loc[2])]


class JoinedPoints:
    """Joins points of one step, as programs log training and validation apart. `names`: of all scores of a point."""

    def __init__(self, names: Collection[str]) -> None:
        self._names, self._open = names, list[CurvePoint]()

    def whole(self, points: Sequence[CurvePoint], *, is_all: bool) -> Iterator[CurvePoint]:
        """Yield those that are whole: one that lacks scores waits for another step, or until there are no more."""
        for point in points:
            if self._open and self._open[-1].step == point.step:
                point = CurvePoint(**{**self._open.pop().model_dump(), **point.model_dump()})
            yield from self._closed()
            self._open.append(point)
        if is_all or (self._open and self._open[-1].scores.keys() >= {*self._names}):
            yield from self._closed()

    def _closed(self) -> Iterator[CurvePoint]:
        while self._open:
            yield self._open.pop()


class ProgressLines:
    """Reads the lines of JSON that a command appends to a file, each once, as they come.

    A line that an earlier attempt was killed in the midst of is cut off, so that none is appended to it.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._read, self._last = path, 0, b""
        if path.exists():
            with path.open("rb+") as file:
                file.truncate(file.read().rfind(b"\n") + 1)

    def news(self) -> list[CurvePoint]:
        """Return the points of the lines that are whole and were not there before."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read - len(self._last))
            if file.read(len(self._last)) != self._last:  # the command began its file anew
                file.seek(0)
                self._read, self._last = 0, b""
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        self._last = (whole + newline)[-LAST:] or self._last
        return [_parsed(line, CurvePoint, self._path.name) for line in whole.splitlines() if line.strip()]
