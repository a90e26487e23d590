"""The `ls` command: the runs of a store as a table.

A run that a study planned has the name of its arm. Others are named by their differences from the defaults, which may
be too long: the words that all have are left out, and what tells the runs from each other comes first.
"""

import math
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import Field

from ablab.api import open as open_store
from ablab.api.run import DAMAGED, Run
from ablab.api.store import Runs
from ablab.api.tables import Rows
from ablab.code.machine import uncollected
from ablab.commands.options import LsOptions
from ablab.config.labels import label
from ablab.errors import DONE, UserError, choices
from ablab.files import csv_text, no_formula
from ablab.store.records import Strict
from ablab.tasks.conditions import SIZE, near_miss
from ablab.tasks.identity import parts_of
from ablab.tasks.registry import known_scores, task_named
from ablab.tasks.score import Score, Scores
from ablab.tasks.verbs import read_words, say_json
from ablab.text import aligned, how_many, size_of
from ablab.tracking.console import Console


class Listed(Strict):
    """A run in a list. `study`, `arm`: as which it was planned last. `choices`: the option of each group.

    `scores`: those it has, of its latest evaluation, on `test_set`. `damage`: what of it cannot be read. `label`:
    what people call its arm; `size`: bytes of its folder, where they were asked for.
    """

    id: str
    name: str
    state: str
    seed: int | None = None
    study: str | None = None
    arm: str | None = None
    condition: str | None = None
    ended: str | None = None
    test_set: str | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    choices: dict[str, str] = Field(default_factory=dict)
    damage: str | None = None
    label: str | None = None
    size: int | None = None

    @classmethod
    def of(cls, run: Run) -> "Listed":
        study, arm = run.arm[:2] if run.arm else (None, None)
        if run.damage is not None:
            return cls(id=run.id, name=run.name, state=run.state, study=study, arm=arm, damage=run.damage)
        record, evaluation = run.record, run.judged
        return cls(
            id=run.id,
            name=run.name,
            state=run.state,
            seed=run.seed,
            study=study,
            arm=arm,
            label=run.label or None,
            condition=None if record is None else record.condition_id,
            ended=None if record is None else record.ended,
            test_set=None if evaluation is None else evaluation.test_name,
            scores=run.scores,
            choices={} if record is None else record.choices,
        )

    @property
    def cells(self) -> dict[str, Any]:
        """The columns that a table can have of it."""
        plain = self.model_dump(exclude={"scores", "choices"}, exclude_none=True)
        return {**plain, **self.scores, **self.choices}


class Listing(Strict):
    """A list of runs."""

    runs: list[Listed]


def age(ended: str) -> str:
    """Return how long ago this moment was, in the largest unit that fits: `3 d`."""
    then = datetime.fromisoformat(ended.replace("Z", "+00:00"))  # Python 3.10 reads no Z
    seconds = max(0.0, (datetime.now(timezone.utc) - then).total_seconds())
    return next((f"{seconds // unit:.0f} {name}" for name, unit in AGES if seconds >= unit), "0 s")


AGE = "age"
"""A column that changes while nothing happens; runs are sorted by `ended`."""

AGES = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
"""Units of age, with their seconds."""


def listing(runs: Runs, sort: str | None = None, limit: int | None = None, *, sized: bool = False) -> Listing:
    """List runs, the newest first. `sort`: a column, such as `test_bleu`, or `-test_bleu` for the highest first.

    Runs without it come last. `sized`: with bytes of their folders, which takes a walk through each.
    """
    if sort in (AGE, f"-{AGE}"):  # the younger has ended later
        sort = "-ended" if sort == AGE else "ended"
    listed = [Listed.of(run) for run in runs]
    if sized or (sort or "").removeprefix("-") == SIZE:
        listed = [one.model_copy(update={"size": run.size}) for one, run in zip(listed, runs, strict=True)]
    runs.keep_index()
    if sort is None:  # what goes on, then the newest
        listed.sort(key=lambda one: one.ended or "9999", reverse=True)
    if sort is not None:
        key = sort.removeprefix("-")
        cells = {one.id: one.cells.get(key) for one in listed}
        if listed and all(cell is None for cell in cells.values()):  # a field, for which records are read
            check_columns([key], listed, f"sort={sort}", [field for run in runs for field in run.values])
            cells = {run.id: run.values.get(key) for run in runs}
        known = [one for one in listed if cells[one.id] is not None]
        known.sort(key=lambda one: _by_number(cells[one.id]), reverse=sort.startswith("-"))
        listed = [*known, *(one for one in listed if cells[one.id] is None)]
    return Listing(runs=listed[:limit])


def _by_number(cell: Any) -> tuple[float, str]:
    """Return a key by which cells of one column sort: numbers by value, also where they stand as typed; then texts."""
    with suppress(TypeError, ValueError):
        if not math.isnan(number := float(cell)):
            return number, ""
    return math.inf, str(cell)


def table_of(listed: Sequence[Listed], columns: Sequence[str], settings: Mapping[str, Run]) -> Rows:
    """Return a table with these columns; what else a condition can name is read from the runs, by their ids."""
    rows = []
    for one in listed:
        cells = one.cells
        if AGE in columns and one.ended is not None:
            cells = {**cells, AGE: age(one.ended)}
        if not set(columns) <= set(cells) and one.damage is None:
            run = settings[one.id]
            cells = {**run.values, **run.settings, **cells}
        rows.append({column: cells.get(column) for column in columns})
    return Rows(rows)


def check_columns(columns: Sequence[str], listed: Sequence[Listed], typed: str, more: Sequence[str] = ()) -> None:
    """Raise UserError for a column that no run has."""
    known = {*Listed.model_fields, *more}.union(*(one.cells for one in listed)) - {"scores", "choices"}
    for column in columns:
        if column not in known:
            raise UserError(f"{typed}: no run has {column or 'a column without a name'}; {choices(column, known)}")


BEFORE, AFTER = ("id", "state", "seed"), ("ended", "name")
"""The columns of a table around its scores, unless others are asked for."""

NAME = 24
"""Characters that a name has at least before columns go for it."""


@uncollected()
def ls(arguments: Sequence[str]) -> int:
    """List runs."""
    options = read_words(LsOptions, arguments)
    if options.format == "json" and options.columns is not None:
        raise UserError(f"columns={options.columns}: not with format=json, which has all; allowed: text, csv")
    if options.format == "json" and options.by is not None:
        raise UserError("by=arm: not with format=json, whose runs have their study and arm; allowed: text, csv")
    store = open_store(Path(options.outputs) / "smoke" if options.smoke else options.outputs)
    found = store.runs(options.where)
    sized = options.columns is not None and SIZE in options.columns.split(",")
    listed = listing(found, options.sort, options.limit, sized=sized)
    if options.format == "json":
        say_json(listed)
        return DONE
    by_id = {run.id: run for run in found}
    known = {**known_scores(), **{name: score for run in found for name, score in run.measured.items()}}
    if options.by is not None:
        return _by_arm(found, known, options)
    columns = [*BEFORE, *_scores_of(found), *AFTER] if options.columns is None else options.columns.split(",")
    if options.columns is not None and listed.runs:
        fields = {key for run in found for key in run.values}
        check_columns(columns, listed.runs, f"columns={options.columns}", [AGE, *fields, *known])
    if options.format == "csv":
        _write_csv(columns, table_of(listed.runs, columns, by_id))
        return DONE
    if not listed.runs:
        Console().say(f"no runs{near_miss([run.values for run in store.runs()], options.where)}")
        return DONE
    _say(listed.runs, columns, by_id, known, is_free=options.columns is None)
    return DONE


def _scores_of(found: Sequence[Run]) -> list[str]:
    """Return the scores that the tasks of these runs list, each once; of no runs, those of the default task."""
    tasks = [task for run in found if (task := run.declaring) is not None] or [task_named()]
    return list(dict.fromkeys(score for task in tasks for score in task.listed))


def _write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    sys.stdout.write(csv_text([columns, *([no_formula(row[column]) for column in columns] for row in rows)]))


def _say(listed: Sequence[Listed], columns: list[str], runs: dict[str, Run], known: Scores, *, is_free: bool) -> None:
    console = Console()
    rows = [
        [_cell(known.get(column), column, row[column]) for column in columns] for row in table_of(listed, columns, runs)
    ]
    names = ShortNames([one.name for one in listed if one.name and one.arm is None])
    studies = {one.study for one in listed}
    for row, one in zip(rows, listed, strict=True):
        if "name" in columns:
            seed = f",s{one.seed}" if "seed" in columns else ""
            own = f"{one.study}: {one.label}" if len(studies) > 1 else one.label
            said = own if one.arm is not None else label(names.of(one.name).removesuffix(seed))
            row[columns.index("name")] = one.damage or said or _of_defaults(one.name)
    width = shutil.get_terminal_size().columns
    table = _fitted([columns, *rows], width, [c for c in columns if c in known]) if is_free else [columns, *rows]
    numbers = {"seed", *known}
    console.say_all(aligned(table, left=[n for n, column in enumerate(table[0]) if column not in numbers]))
    if names.shared:
        console.say(f"all have: {', '.join(names.shared)}")
    console.say_all(_notes([runs[one.id] for one in listed]))


def _of_defaults(name: str) -> str:
    """Return what a run without differences from the defaults is called: those of one that never ended are unknown."""
    return "baseline" if name else "unnamed"


def _cell(score: Score | None, column: str, value: object) -> str:
    if value is None:
        return ""
    if score is not None and isinstance(value, float):
        return f"{value:,.{score.digits}f}"
    if column == SIZE and isinstance(value, int):
        return size_of(value)
    return str(value)[:10] if column == "ended" else str(value)


def _by_arm(found: Runs, known: Scores, options: LsOptions) -> int:
    """Print a row for each arm of each study, the newest first, and for runs that no study planned."""
    if other := next((key for key in ("columns", "sort", "limit") if getattr(options, key) is not None), None):
        raise UserError(f"by=arm: not with {other}=; allowed: where, format, outputs")
    if not found and options.format != "csv":
        Console().say("no runs")
        return DONE
    arms: dict[tuple[str, str], list[Run]] = {}
    for run in found:
        own = run.label or _of_defaults(run.name)
        if run.damage is None and run.record is not None:  # two recipes may have one name, as after an edit of the text
            own = run.record.condition_id
        arms.setdefault(("", own) if run.arm is None else run.arm[:2], []).append(run)
    scores = _scores_of(found)
    rows = [_arm_row(study, runs, scores) for (study, _), runs in arms.items()]
    rows.sort(key=lambda row: row["ended"] or "9999", reverse=True)
    columns = ["study", "arm", "runs", *scores, "ended", SIZE]
    if options.format == "csv":
        _write_csv(columns, rows)
        return DONE
    cells = [[_cell(known.get(column), column, row[column]) for column in columns] for row in rows]
    kept = [n for n, column in enumerate(columns) if column not in known or any(row[n] for row in cells)]
    table = [[line[n] for n in kept] for line in (columns, *cells)]
    console = Console()
    console.say_all(aligned(table, left=[n for n, column in enumerate(table[0]) if column not in {SIZE, *known}]))
    whole = size_of(sum(run.size for run in found))
    console.say(f"{how_many(len(found), 'run')}, {whole}; scores are means, of arms of which no run diverged")
    console.say_all(_notes(found))
    return DONE


def _arm_row(study: str, runs: Sequence[Run], scores: Sequence[str]) -> dict[str, Any]:
    states = Counter(run.state for run in runs)
    # A mean over the survivors flatters an arm.
    kept = [] if states["diverged"] else runs
    values = {name: [run.scores[name] for run in kept if name in run.scores] for name in scores}
    if len({repr(run.judged.settings) for run in kept if run.damage is None and run.judged is not None}) > 1:
        values |= {name: [] for name in values if name.startswith("test_")}  # of several test sets, or searches
    return {
        "study": study or "-",
        "arm": runs[0].label or _of_defaults(runs[0].name),
        "runs": ", ".join(f"{count} {state}" for state, count in states.items()),
        **{name: sum(found) / len(found) if found else None for name, found in values.items()},
        "ended": max((run.record.ended for run in runs if run.damage is None and run.record), default=None),
        SIZE: sum(run.size for run in runs),
    }


def _fitted(table: list[list[str]], width: int, scores: Sequence[str]) -> list[list[str]]:
    """Leave out columns, and cut names, until a line has at most `width` characters. The name is the last column."""
    for spare in ("", *scores[:0:-1], AFTER[0]):
        if spare in table[0]:
            place = table[0].index(spare)
            table = [[*row[:place], *row[place + 1 :]] for row in table]
        used = sum(2 + max(map(len, column)) for column in list(zip(*table, strict=True))[:-1])
        if width - used >= min(NAME, max(len(row[-1]) for row in table)):
            break
    room = max(width - used, 8)
    return [[*row[:-1], row[-1] if len(row[-1]) <= room else f"{row[-1][: room - 1]}…"] for row in table]


def _notes(runs: Iterable[Run]) -> list[str]:
    runs = list(runs)
    damaged = [run.id for run in runs if run.state == DAMAGED]
    judged = [run.judged for run in runs if run.damage is None]
    ways = {repr(evaluation.settings) for evaluation in judged if evaluation is not None}
    several = f"scores are of {len(ways)} test sets or searches: compare those of one (ablab show run=<id>)"
    broken = f"damaged: {', '.join(damaged[:3])}{', ...' * (len(damaged) > 3)} (ablab show run=<id>)"
    return [*([several] if len(ways) > 1 else []), *([broken] if damaged else [])]


class ShortNames:
    """The names of a list. `shared`: the words that all of several have, which the list says once."""

    def __init__(self, names: Sequence[str]) -> None:
        split = [parts_of(name) for name in names]
        first, *others = split or [[]]
        self.shared = [word for word in first if all(word in other for other in others)] if others else []
        self._order = _varying_first(split)

    def of(self, name: str) -> str:
        """Return one of the names without the shared words."""
        own = [word for word in parts_of(name) if word not in self.shared]
        return ",".join(sorted(own, key=lambda word: self._order[_key_of(word)]))


def _varying_first(names: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the place of each key: the more names agree in its value, or lack it, the later. The seed is last.

    A long name is cut, and what it has in common with most runs of a store is what it may lose.
    """
    words = Counter(word for name in names for word in name)
    having = Counter(_key_of(word) for word in words.elements())
    alike = {key: len(names) - number for key, number in having.items()}
    for word, number in words.items():
        alike[_key_of(word)] = max(alike[_key_of(word)], number)
    ranked = sorted(alike, key=lambda key: (key == "", alike[key]))
    return {key: place for place, key in enumerate(ranked)}


def _key_of(word: str) -> str:
    """Return the key of a word of a name; none of a seed, which has a column, and of a word without a key."""
    key, is_set, _ = word.partition("=")
    return key if is_set else ""
