"""Rows of data, which become a pandas DataFrame when asked to."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from ablab.errors import UserError

if TYPE_CHECKING:
    import pandas

Row = Mapping[str, Any]


class Rows(Sequence[Row]):
    """An unchanging table: a mapping from column to value for each row. `notes`: what a report says beside them.

    `columns`: all columns, in order; by default that in which rows first have them.
    """

    def __init__(self, rows: Iterable[Row], notes: Sequence[str] = (), columns: Sequence[str] = ()) -> None:
        self._rows, self.notes = tuple(rows), tuple(notes)
        self.columns = list(columns) or list(dict.fromkeys(key for row in self._rows for key in row))

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> "Rows": ...
    def __getitem__(self, index: int | slice) -> "Row | Rows":
        return Rows(self._rows[index], self.notes, self.columns) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Rows({len(self)} of {', '.join(self.columns) or 'no columns'})"

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the rows as a DataFrame, with the notes in its `attrs`; Error where pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise UserError("to_pandas: pandas is not installed; pip install 'ablab[pandas]'") from None
        frame = pandas.DataFrame([dict(row) for row in self._rows], columns=self.columns)
        frame.attrs["notes"] = list(self.notes)
        return frame
