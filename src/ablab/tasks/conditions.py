"""Conditions on runs, such as `model=tiny layerdrop!=0 test_bleu>30`: parsed once, and the same wherever they stand."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from operator import ge, gt, le, lt
from typing import Any

from ablab.errors import UserError, choices
from ablab.fields import as_typed, flatten
from ablab.store.records import AnyEvaluation, Record
from ablab.tasks.registry import known_scores, task_recorded
from ablab.tasks.task import Task

ENDED = "ended"
"""The key of conditions on the day on which a run ended."""

SIZE = "size"
"""The key of conditions on megabytes of a run's folder."""

ARM, LABEL = "arm", "label"
"""Keys of conditions on the arm as which a run was planned last. Its label counts as its name."""

ID, NAME = "id", "name"
"""Keys of conditions on a run itself: its id, or how that begins; and its name, for which its arm's label may stand."""

DAY = re.compile(r"\d{4}-\d\d(-\d\d)?")

STATES = ("damaged", "diverged", "failed", "finished", "interrupted", "planned", "queued", "running", "trained")
"""What conditions may say of the state of a run: a misspelt one after `!=` would be that of no run, and meet all."""

COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {"<=": le, ">=": ge, "<": lt, ">": gt}
"""Operators that compare numbers, and days."""

CONDITION = re.compile(r"([^=!<>]+)(!=|<=|>=|=|<|>)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    """A value that a run must have, must not have, or must lie above or below. `whole`: commas belong to the value."""

    key: str
    operator: str
    value: str
    whole: bool = False

    def holds(self, there: str | None) -> bool:
        """Return whether this value meets it; None where a run has none, which only `!=` accepts."""
        if self.key == ENDED:
            day = None if there is None else there[: len(self.value)]
            if self.operator not in COMPARED:
                return (day == self.value) == (self.operator == "=")
            return day is not None and COMPARED[self.operator](day, self.value)
        if self.key == ID and self.operator not in COMPARED:
            return (there or "").startswith(tuple(self.value.split(","))) == (self.operator == "=")
        if self.operator in COMPARED:
            number = _number(there)
            return number is not None and COMPARED[self.operator](number, float(self.value))
        others = [] if self.whole or self.value.startswith("[") else self.value.split(",")
        return any(_same(there, one) for one in (self.value, *others)) == (self.operator == "=")

    def meets(self, values: Mapping[str, str]) -> bool:
        """Return whether a run with these values meets it."""
        there: Sequence[str | None] = self.of(values) or [None]
        return (all if self.operator == "!=" else any)(map(self.holds, there))

    def of(self, values: Mapping[str, str]) -> list[str]:
        """Return what it is about of a run with these values: a run's label is another name of its arm."""
        keys = (self.key, LABEL) if self.key in (ARM, NAME) else (self.key,)
        return [values[key] for key in keys if key in values]


def conditions(text: str) -> list[Condition]:
    """Parse conditions with spaces between, which quotes keep; UserError where a word is none. There may be none."""
    words = shlex.shlex(text, posix=True, punctuation_chars="")
    words.whitespace_split, words.commenters, words.escape = True, "", ""
    try:
        return [_condition(word) for word in words]
    except ValueError:
        raise UserError(f"where={text}: a quote is not closed") from None


def meeting(found: Sequence[Mapping[str, str]], text: str) -> list[bool]:
    """Return of each run, given by its values, whether it meets all conditions; UserError for a key that none has.

    Commas stand between several values, unless a run has the value with its commas, as arms of several factors do. Of
    names, each must be one that a run has: half the name of an arm may be another arm.
    """
    wanted = [replace(one, whole=_is_whole(one, found)) for one in conditions(text)]
    known = {*known_scores(), ID, NAME, "seed", "state", SIZE, "study", ARM, LABEL}.union(*found)
    for one in wanted:
        if found and one.key not in known:
            raise UserError(f"where={text}: no run has {one.key}; {choices(one.key, known)}")
    return [all(one.meets(values) for one in wanted) for values in found]


def _is_whole(one: Condition, found: Sequence[Mapping[str, str]]) -> bool:
    there = {value for values in found for value in one.of(values)}
    return one.value in there or (one.key in (ARM, LABEL, NAME) and not there.issuperset(one.value.split(",")))


def near_miss(found: Sequence[Mapping[str, str]], text: str) -> str:
    """Return `; did you mean norm=scalenorm?` if a condition names a value that no run has, but one is like it."""
    for one in conditions(text):
        there = {value for values in found for value in one.of(values)}
        if one.operator == "=" and there and not any(map(one.holds, there)):
            near = get_close_matches(one.value, {value[:10] for value in there} if one.key == ENDED else there, n=1)
            return f"; did you mean {one.key}={shlex.quote(near[0])}?" if near else ""
    return ""


def values_of(record: Record, evaluation: AnyEvaluation | None = None) -> dict[str, str]:
    """Return a run's groups by their option, its fields by their value as typed, its state, and its scores."""
    task = task_recorded(record.settings, None if evaluation is None else evaluation.settings)
    fields = typed(record.settings)
    scores = {name: score.value(record, evaluation) for name, score in task.measured.items()}
    return {
        **fields,
        **record.choices,
        **own_names(task, fields),
        **{name: str(value) for name, value in scores.items() if value is not None},
        "state": record.state,
        "seed": str(record.config.get("seed")),
    }


def own_names(task: Task, fields: Mapping[str, str]) -> dict[str, str]:
    """Return those of the fields that a task has another name for, by that name."""
    called = {key: task.called(key) for key in fields if key.startswith("task.")}
    return {name: fields[key] for key, name in called.items() if name is not None}


def typed(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return fields by their dotted names, with their values as typed on the command line."""
    return {key: as_typed(value) for key, value in flatten(settings).items()}


def _condition(word: str) -> Condition:
    found = CONDITION.fullmatch(word)
    if found is None or found[3].startswith(("=", "<", ">")):
        raise UserError(f"where={word}: allowed: key=value, or with !=, <, <=, > or >= in place of =")
    one = Condition(found[1], found[2], found[3])
    if one.key == ENDED:
        if DAY.fullmatch(one.value) is None or not _is_day(one.value):
            raise UserError(f"where={word}: allowed: a day or month, such as {ENDED}{one.operator}2026-11-25")
        return one
    if one.key == "state" and one.operator not in COMPARED:
        for state in one.value.split(","):
            if state not in STATES:
                raise UserError(f"where={word}: {choices(state, STATES)}")
    if one.key == ID and not all(one.value.split(",")):
        raise UserError(f"where={word}: allowed: how an id begins, such as id=r3f2; one that says nothing is all runs")
    if one.operator in COMPARED and _number(one.value) is None:
        of = " of megabytes" * (one.key == SIZE)
        raise UserError(f"where={word}: allowed: a number{of}, such as {one.key}{one.operator}100")
    return one


def _is_day(text: str) -> bool:
    """Return whether a calendar has this day, or month."""
    try:
        date.fromisoformat(text if len(text) > len("2026-11") else f"{text}-01")
    except ValueError:
        return False
    return True


def _same(there: str | None, wanted: str) -> bool:
    """Compare numbers by value: 0 equals 0.0, and 1e-3 equals 0.001. A level may be called nan, which equals itself."""
    number = _number(wanted)
    return there == wanted or (number is not None and number == _number(there))


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
