"""Results of runs from elsewhere, from a table with a row per arm, seed and metric, or per test item."""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ablab.errors import UserError, choices
from ablab.judge.runs import Given
from ablab.judge.table_rows import CORPUS, ITEM, Sheet, is_missing
from ablab.study.design import SAME
from ablab.tasks.score import LARGEST_SCORE
from ablab.text import is_one_line

COLUMNS = ("arm", "seed", "metric", "value")
SCORE = frozenset(("metric", "value"))
"""Those that a table has where each row is a score, and not a run."""

ALLOWED = (*COLUMNS, ITEM, CORPUS)

DIVERGED = "diverged"
"""Value of a run that has no score because training failed."""


@dataclass
class RunScores:
    """What a table says of one run: values by item, or one value under no item, by metric."""

    values: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    has_diverged: bool = False


@dataclass(frozen=True)
class Results:
    """The runs of a table by arm and seed, in its order; None: the run has no score. `corpora`: by arm, if it has them.

    `unfinished`: those that go on or failed, and which of the two; the others without a score diverged. `lower`:
    whether lower is better, of metrics of which the table itself says so. `notes`: what a report says of the reading.
    `began`: when the first run began, in Unix seconds, where that is known.
    """

    metrics: Sequence[str]
    runs: Mapping[str, Mapping[int, Given | None]]
    corpora: Mapping[str, str] = field(default_factory=dict)
    unfinished: Mapping[tuple[str, int], str] = field(default_factory=dict)
    lower: Mapping[str, bool] = field(default_factory=dict)
    notes: Sequence[str] = ()
    began: float | None = None


def results_of(sheet: Sheet) -> Results:
    """Return the results in rows of scores. Raises UserError for what is missing, unclear or there twice."""
    for column in sheet.columns:
        if column not in ALLOWED:
            is_of_runs = not SCORE & set(sheet.columns)
            hint = (
                "; where a row is a run, say which of its scores to judge, as in metric=accuracy" if is_of_runs else ""
            )
            if column in ("", "__index_level_0__"):
                hint = "; pandas writes its index so, unless it is told index=False"
            raise UserError(f"{sheet.name}: column {column or repr(column)}: {choices(column, ALLOWED)}{hint}")
    for column in COLUMNS:
        if column not in sheet.columns:
            raise UserError(f"{sheet.name}: has no column {column}; it needs {', '.join(COLUMNS)}")
    if not sheet.rows:
        raise UserError(f"{sheet.name}: has no rows; allowed: a row for each arm, seed and metric")
    runs: dict[str, dict[int, RunScores]] = {}
    metrics: dict[str, None] = {}
    corpora: dict[str, str] = {}
    for where, values in sheet.rows:
        row = {column: str(values.get(column, "")) for column in sheet.columns}
        row |= {
            column: "" for column in ("arm", "metric", ITEM, CORPUS) if column in row and is_missing(values.get(column))
        }
        if isinstance(seed := values.get("seed"), float) and seed.is_integer():
            row["seed"] = str(int(seed))  # pandas makes floats of whole numbers where it joins frames
        arm, metric = (named(row[column], column, where) for column in ("arm", "metric"))
        metrics[metric] = None
        scores = runs.setdefault(arm, {}).setdefault(seed_in(row["seed"], where), RunScores())
        _take(scores, row, where)
        if CORPUS in row:
            corpus = named(row[CORPUS], CORPUS, where)
            if (first := corpora.setdefault(arm, corpus)) != corpus:
                raise UserError(f"{where}: corpus={corpus}: {arm} has {first} above; allowed: one corpus for each arm")
    return results_of_scores(sheet.name, list(metrics), runs, corpora=corpora)


def results_of_scores(
    name: str, metrics: Sequence[str], runs: Mapping[str, Mapping[int, RunScores]], **about: Any
) -> Results:
    """Return results by the scores of each run; `about`: the other fields. UserError where runs have other items."""
    if (joined := next((arm for arm in runs if SAME in arm), None)) is not None:
        apart = joined.replace(SAME, SAME.strip())
        raise UserError(f"{name}: arm {joined}: '{SAME}' joins names of one arm in reports; allowed: such as {apart}")
    _check_items(name, runs, about.get("corpora", {}))
    given = {
        arm: {seed: _given(scores, f"seed {seed} of {arm}") for seed, scores in of_arm.items()}
        for arm, of_arm in runs.items()
    }
    return Results(metrics, given, **about)


def named(text: str, column: str, where: str) -> str:
    if not text.strip() or not is_one_line(text):
        raise UserError(f"{where}: {column}={text!r}: allowed: a name on one line")
    return text.strip()


def seed_in(text: str, where: str) -> int:
    found = re.fullmatch(r"([0-9]+)(\.0*)?", text.strip())  # pandas writes a column that has gaps with points
    if found is None:
        raise UserError(f"{where}: seed={text}: allowed: whole numbers from 0, in the digits 0 to 9")
    return int(found[1])


def _take(scores: RunScores, row: Mapping[str, str], where: str) -> None:
    """Add a row to the scores of its run."""
    text, metric, item = row["value"].strip(), row["metric"].strip(), row.get(ITEM, "").strip()
    items = scores.values[metric]
    if ITEM in row and text != DIVERGED and (any(items) if not item else "" in items):
        raise UserError(f"{where}: item is empty; allowed: the name or number of a test item")
    if item in scores.values[metric]:
        raise UserError(f"{where}: the {metric} of this run{f' on item {item}' if item else ''} comes twice")
    if text == DIVERGED:
        scores.has_diverged = True
    else:
        scores.values[metric][item] = _value(text, f"{where}, {metric}")
    if scores.has_diverged and any(scores.values.values()):
        raise UserError(f"{where}: the run has scores and is said to have diverged; allowed: one or the other")


NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""A value. `float` also reads `31_5`, and the digits of other scripts, where a slip is likelier than a number."""


def _value(text: str, where: str) -> float:
    value = float(text) if NUMBER.fullmatch(text) else math.nan
    if not abs(value) < LARGEST_SCORE:  # nan is not, either
        given = f"value={text}" if text else "the value is empty"
        point = ", with a point and not a comma" if "," in text else ""
        raise UserError(
            f"{where}: {given}: allowed: a number such as 31.5 or 2e-3, below {LARGEST_SCORE:g}{point}, or {DIVERGED} "
            "for a run without a score"
        )
    return value


def _check_items(table: str, runs: Mapping[str, Mapping[int, RunScores]], corpora: Mapping[str, str]) -> None:
    """Raise UserError unless all runs of a corpus have the same test items: what is hard must be so for all."""
    first: dict[tuple[str, str | None], tuple[str, set[str]]] = {}
    for arm, of_arm in runs.items():
        for seed, scores in of_arm.items():
            for metric, values in scores.values.items():
                if not values:  # of a diverged run
                    continue
                name = f"{arm}, seed {seed}"
                usual, items = first.setdefault((metric, corpora.get(arm)), (name, set(values)))
                if items != set(values):
                    odd = min(items ^ set(values))
                    raise UserError(f"{table}: item {odd} of {metric} is that of {usual} or of {name}, and not of both")


def _given(scores: RunScores, run: str) -> Given | None:
    if scores.has_diverged or not any(scores.values.values()):
        return None
    means = {metric: math.fsum(values.values()) / len(values) for metric, values in scores.values.items() if values}
    items = {
        metric: np.array([values[item] for item in sorted(values)])
        for metric, values in scores.values.items()
        if values and set(values) != {""}
    }
    return Given(run, means, items)
