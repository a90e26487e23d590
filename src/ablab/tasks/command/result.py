"""The files that a command writes: its result, one JSON object, and lines of JSON on its progress."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ablab.errors import LostError
from ablab.tasks.own import DivergedError

KEYS = ("scores", "status", "curve", "items")
STATUS = ("finished", "diverged")
LONGEST = 512 * 2**20
"""Bytes of the largest result that is read."""


class CommandError(LostError):
    """The command has failed: it gave no result, or one that cannot be read."""


@dataclass(frozen=True)
class Result:
    """What a command has written. `curve`: scores by step, in order. `items`: by score, its summands [items, k]."""

    scores: Mapping[str, float]
    curve: Sequence[tuple[int, Mapping[str, float]]] = ()
    items: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)


def read_result(path: Path, declared: Sequence[str]) -> Result:
    """Read a result that has all declared scores. Raises CommandError for any other, DivergedError for one that says so
    or has a score that is no finite number.
    """
    content = _content(path)
    if unknown := [key for key in content if key not in KEYS]:
        raise CommandError(f"{path.name}: {unknown[0]}: no such key; allowed: {', '.join(KEYS)}")
    status = content.get("status", "finished")
    if status not in STATUS:
        raise CommandError(f"{path.name}: status: {_short(status)}; allowed: {', '.join(STATUS)}")
    if status == "diverged":
        raise DivergedError("the command says that it diverged")
    scores = _scores(content.get("scores"), path.name)
    if lacking := [name for name in declared if name not in scores]:
        there = ", ".join(scores) or "none"
        raise CommandError(f"{path.name}: scores: {lacking[0]} is missing, and there is {there}")
    lost = [name for name in declared if not math.isfinite(scores[name])]
    if lost:
        raise DivergedError(f"{lost[0]} is {scores[lost[0]]}")
    return Result(scores, _curve(content.get("curve", []), path.name), _items(content.get("items", {}), path.name))


def _content(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LONGEST:
            raise CommandError(f"{path.name}: larger than {LONGEST // 2**20} MiB")
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CommandError("the command ended without a result: it wrote nothing to {result}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"{path.name}: not readable as JSON ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict) or not isinstance(content.get("scores", {}), dict):
        raise CommandError(f'{path.name}: no result; allowed: {{"scores": {{"<name>": <number>}}}}')
    return content


def _scores(found: Any, where: str) -> dict[str, float]:
    scores = {}
    for name, value in (found or {}).items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CommandError(
                f"{where}: scores: {name}: {_short(value)} is no number; allowed: a number, without quotes"
            )
        scores[name] = float(value)
    return scores


def _curve(found: Any, where: str) -> list[tuple[int, Mapping[str, float]]]:
    return [point for each in found for point in [point_of(each, f"{where}: curve")]]


def point_of(found: Any, where: str) -> tuple[int, Mapping[str, float]]:
    """Return the step and the scores of one point of a curve; CommandError for what is none."""
    step = found.get("step") if isinstance(found, dict) else None
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise CommandError(f'{where}: {_short(found)}; allowed: {{"step": <whole number>, "<score>": <number>}}')
    return step, _scores({name: value for name, value in found.items() if name != "step"}, where)


def _items(found: Any, where: str) -> dict[str, list[list[float]]]:
    """Return two summands of each item, its number and a count of 1, of whose sums the mean follows."""
    items: dict[str, list[list[float]]] = {}
    if not isinstance(found, dict):
        raise CommandError(f'{where}: items: {_short(found)}; allowed: {{"<score>": [<number of each item>]}}')
    for name, values in found.items():
        whole = isinstance(values, list) and all(isinstance(v, int | float) and math.isfinite(v) for v in values)
        if not whole:
            raise CommandError(f"{where}: items: {name}: no list of numbers")
        items[name] = [[float(value), 1.0] for value in values]
    return items


class ProgressLines:
    """Reads the lines of JSON that a command appends to a file, each once, as they come."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0

    def news(self) -> list[tuple[int, Mapping[str, float]]]:
        """Return the points of the lines that are whole and were not there before."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        return [self._point(line) for line in whole.splitlines() if line.strip()]

    def _point(self, line: bytes) -> tuple[int, Mapping[str, float]]:
        try:
            found = json.loads(line)
        except ValueError:
            raise CommandError(f"{self._path.name}: {_short(line.decode(errors='replace'))}: no JSON") from None
        return point_of(found, self._path.name)


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
