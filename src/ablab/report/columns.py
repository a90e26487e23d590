"""A table of a report: its columns, their cells, and how a page shows it.

On a page it is no wider than a screen, with notes below instead of inside the cells.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar


@dataclass(frozen=True)
class ReportTable:
    """A table of strings. `left`: number of leading columns that hold words, not figures.

    `data`: the same rows for programs: cells with the names of their columns, which say the units of plain numbers.
    """

    key: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    data: Sequence[Sequence[tuple[str, Any]]] = ()


Line = TypeVar("Line")


@dataclass(frozen=True)
class Column(Generic[Line]):
    """A column of a table, and its cell of a line. `is_sparse`: it is left out where all its cells are empty.

    `leads`: it holds words, not figures, and stands before all that hold figures. `data`: what programs read instead of
    the cell, by the names of their columns.
    """

    title: str
    cell: Callable[[Line], str]
    is_sparse: bool = False
    leads: bool = False
    data: Callable[[Line], Mapping[str, Any]] | None = None

    def read(self, line: Line) -> Mapping[str, Any]:
        """Return what programs read of a line."""
        return {self.title: self.cell(line)} if self.data is None else self.data(line)


def table_of(key: str, title: str, columns: Sequence[Column[Line]], lines: Sequence[Line]) -> ReportTable:
    """Return a row for each line, without the sparse columns that have only empty cells."""
    cells = [[column.cell(line) for line in lines] for column in columns]
    kept = [(column, each) for column, each in zip(columns, cells, strict=True) if not column.is_sparse or any(each)]
    return ReportTable(
        key,
        title,
        columns=[column.title for column, _ in kept],
        rows=[[each[place] for _, each in kept] for place in range(len(lines))],
        left=sum(column.leads for column, _ in kept),
        data=[[cell for column, _ in kept for cell in column.read(line).items()] for line in lines],
    )


LESS_READ = {
    "arms": (
        "min to max",
        "test loss",
        "validation loss",
    ),
    "differences": ("seen with 80 % power", "test"),
    "claims": ("test", "published", "source"),
}
"""Columns that fold below the table: with them it is wider than a screen of 1,280 pixels."""

WORDS = ("published", "source", "test", "p is of")
"""Columns of words that do not lead their tables."""


class PageColumn(NamedTuple):
    """A column of the page's table. `holds_words`: aligned and sorted as text."""

    title: str
    holds_words: bool


class PageRow(NamedTuple):
    """Cells of a row, and the numbers of the notes on it."""

    cells: list[str]
    notes: list[int]
    is_baseline: bool


@dataclass(frozen=True)
class PageTable:
    """A table with its notes, numbered from 1, and a second table of columns that fewer people read."""

    key: str
    columns: list[PageColumn]
    rows: list[PageRow]
    notes: list[str]
    rest: "PageTable | None" = None


def page_table(table: ReportTable) -> PageTable:
    """Return the table for the page."""
    aside = LESS_READ.get(table.key, ())
    folded = [
        place
        for place, name in enumerate(table.columns)
        if place > table.left  # what arms are compared by stays
        and (name in aside or (table.key == "arms" and name.endswith("/s")))
    ]
    rest = _part(table, f"{table.key}-more", [0, *folded], []) if folded else None
    notes = list(dict.fromkeys(note for row in table.rows if (note := _note(table, row))))
    kept = [
        place
        for place, name in enumerate(table.columns)
        if place not in folded and (name != "notes" or place >= table.left)
    ]
    return _part(table, table.key, kept, notes, rest)


def table_of_cells(key: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> PageTable:
    """Return a table that a run has left; a column holds words where any of its cells does."""
    words = [any(isinstance(row[place], str) for row in rows) for place in range(len(columns))]
    return PageTable(
        key,
        [PageColumn(title, of_words) for title, of_words in zip(columns, words, strict=True)],
        [PageRow([_written(cell) for cell in row], [], False) for row in rows],
        notes=[],
    )


def _written(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _note(table: ReportTable, row: Sequence[str]) -> str:
    leading = table.columns[: table.left]  # a score of the user's may be titled notes
    return row[leading.index("notes")] if "notes" in leading else ""


def _part(
    table: ReportTable, key: str, places: list[int], notes: list[str], rest: PageTable | None = None
) -> PageTable:
    """Return some of the columns, by their places: a score of the user's may have the title of another column."""
    names = [table.columns[place] for place in places]
    columns = [PageColumn(name, place < table.left or name in WORDS) for name, place in zip(names, places, strict=True)]
    numbers = dict(zip(notes, count(1)))
    baselines = {number for number, cells in enumerate(table.data) if dict(cells).get("is baseline") == 1}
    rows = [
        PageRow(
            [row[place] for place in places],
            [numbers[note]] if (note := _note(table, row)) in numbers else [],
            number in baselines,
        )
        for number, row in enumerate(table.rows)
    ]
    return PageTable(key, columns, rows, notes, rest)
