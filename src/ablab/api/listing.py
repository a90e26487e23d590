"""What is told of each run in a list of runs: data for programs, and the columns of a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from ablab.api.run import Run
from ablab.api.store import Runs
from ablab.api.tables import Rows
from ablab.errors import UserError, choices
from ablab.store.records import Strict


class Listed(Strict):
    """A run in a list. `study`, `arm`: as which it was planned last. `choices`: the option of each group.

    `scores`: those it has, of its latest evaluation, on `test_set`. `damage`: what of it cannot be read.
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

    @classmethod
    def of(cls, run: Run) -> "Listed":
        study, arm = run.arm or (None, None)
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


def listing(runs: Runs, sort: str | None = None, limit: int | None = None) -> Listing:
    """List runs. `sort`: a column, such as `test_bleu`, or `-test_bleu` for the highest first; runs without it last."""
    listed = [Listed.of(run) for run in (runs if sort is not None else runs[:limit])]
    runs.keep_index()
    if sort is not None:
        key = sort.removeprefix("-")
        if listed:  # of no runs, no column is known
            check_columns([key], listed, f"sort={sort}")
        known = [one for one in listed if key in one.cells]
        known.sort(key=lambda one: one.cells[key], reverse=sort.startswith("-"))
        listed = [*known, *(one for one in listed if key not in one.cells)]
    return Listing(runs=listed[:limit])


def table_of(listed: Sequence[Listed], columns: Sequence[str], settings: Mapping[str, Run]) -> Rows:
    """Return a table with these columns; fields of the configuration are read from the runs, by their ids."""
    rows = []
    for one in listed:
        cells = one.cells
        if not set(columns) <= set(cells) and one.damage is None:
            cells = {**settings[one.id].settings, **cells}
        rows.append({column: cells.get(column) for column in columns})
    return Rows(rows)


def check_columns(columns: Sequence[str], listed: Sequence[Listed], typed: str, more: Sequence[str] = ()) -> None:
    """Raise UserError for a column that no run has."""
    known = {*Listed.model_fields, *more}.union(*(one.cells for one in listed)) - {"scores", "choices"}
    for column in columns:
        if column not in known:
            raise UserError(f"{typed}: no run has {column or 'a column without a name'}; {choices(column, known)}")
