"""A store opened: its runs, chosen by conditions, and its studies."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, overload

from ablab.api.run import PlannedAs, Run
from ablab.api.tables import Row, Rows
from ablab.errors import UserError
from ablab.files import read_json
from ablab.store.finished import find_run
from ablab.store.index import index_of
from ablab.store.run_folder import RunFolder, all_runs
from ablab.study.study import label_of
from ablab.tasks.conditions import SIZE, conditions, meeting

if TYPE_CHECKING:
    import pandas

    from ablab.api.study import LaunchedStudy


def open(outputs: str | Path = "outputs") -> "Store":
    """Open the store in this folder, for reading; Error where there is none."""
    if not isinstance(outputs, str | Path):
        raise UserError(f"open: outputs={outputs!r}: allowed: a folder")
    path = Path(outputs)
    if not path.is_dir():
        raise UserError(f"outputs={outputs}: no such folder")
    return Store(path)


class Runs(Sequence[Run]):
    """Runs in the order of their ids, or as sorted."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = tuple(runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> "Runs": ...
    def __getitem__(self, index: int | slice) -> "Run | Runs":
        return Runs(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return f"Runs({len(self)})"

    def table(self) -> Rows:
        """Return a row for each run: what it is, its scores, then groups and settings, those first that vary."""
        rows = [run.row() for run in self]
        self.keep_index()
        return Rows(rows, columns=_ordered(rows, {key for run in self for key in run.described}))

    def keep_index(self) -> None:
        """Write the index of the store after many runs have been read, so that the next list is fast."""
        for index in {run.index for run in self if run.index is not None}:
            index.keep()

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the table as a DataFrame; Error where pandas is not installed."""
        return self.table().to_pandas()


def with_sizes(runs: Sequence[Run], where: str) -> list[Mapping[str, str]]:
    """Return the values of runs for these conditions; sizes, which take a walk through each folder, where asked for."""
    sized = any(one.key == SIZE for one in conditions(where))
    return [{SIZE: str(run.size / 1e6), **run.values} if sized else run.values for run in runs]


@dataclass(frozen=True)
class Store:
    """The folder of all runs and studies."""

    path: Path

    def runs(self, where: str = "") -> Runs:
        """Return the runs that meet these conditions, such as `model=tiny test_bleu>30`; all without any.

        Damaged runs are among all; of their values conditions know only the state. Error for what is no condition, and
        for a key that no run has.
        """
        if not isinstance(where, str):
            raise UserError(f"runs: where={where!r}: allowed: text, such as 'model=tiny seed=1'")
        conditions(where)
        arms = self.arms()
        index = index_of(self.path)
        found = [Run(folder, arms.get(folder.run_id), index) for folder in all_runs(self.path)]
        if not where.split():
            return Runs(found)
        are_meant = meeting(with_sizes(found, where), where)
        index.keep()
        return Runs(compress(found, are_meant))

    def run(self, reference: str) -> Run:
        """Return the run with this id, unambiguous beginning of an id, display name, or path; Error otherwise."""
        folder = find_run(str(reference), self.path)
        return Run(folder, self.arms().get(folder.run_id))

    def study(self, name: str | Path, *words: str) -> "LaunchedStudy":
        """Return the study of an experiment file, by its name or path; `words`: others that it was launched with.

        A study without such a file is read from what the store keeps of it. Error where there is neither, or none of
        its runs has begun here.
        """
        from ablab.api.study import study_of  # a report's statistics, which lists of runs do without

        return study_of(str(name), words, self.path)

    @property
    def studies(self) -> list[str]:
        """The names of studies that were launched here."""
        return sorted(path.parent.name for path in self.path.glob("studies/*/runs.json"))

    def of_study(self, name: str) -> set[str]:
        """Return the ids of the runs that a launched study has planned."""
        return {run for run, *_ in _planned(self.path / "studies" / name / "runs.json")}

    def arms(self) -> dict[str, PlannedAs]:
        """Return the place of each planned run, by its id, in the study that was launched last."""
        files = [self.path / f"studies/{name}/runs.json" for name in self.studies]
        return {
            run: PlannedAs(file.parent.name, *arm)
            for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)
            for run, *arm in _planned(file)
        }

    def folder(self, run_id: str) -> RunFolder:
        """Return the folder that a run of this id has, or would have."""
        return RunFolder(self.path / "runs" / run_id)


LEADS = (
    *("id", "name", "state", "damage", "seed", "study", "arm", "label", "condition", "ended"),
    *("parameters", "minutes", "test_set"),
)
"""The columns before the scores."""


def _ordered(rows: Sequence[Row], settings: Collection[str]) -> list[str]:
    """Return the columns in order: what a run is, its scores, its settings that vary between the runs, all others.

    A setting that only some of the runs have varies too; one that has not ended has no more than its recipe.
    """
    ended = [row for row in rows if "condition" in row]

    def place(column: str) -> int:
        if column in LEADS:
            return LEADS.index(column)
        varies = len({repr(row[column]) for row in rows if column in row}) > 1
        varies |= 0 < sum(column in row for row in ended) < len(ended)
        return len(LEADS) + (column in settings) * (2 - varies)

    return sorted(dict.fromkeys(key for row in rows for key in row), key=place)


def _planned(path: Path) -> list[tuple[str, str, str]]:
    """Return id, arm and label of each planned run; nothing of a damaged file, which only names runs."""
    try:
        return [
            (str(each["run_id"]), arm := str(each["arm"]), str(each.get("label") or label_of(arm)))
            for each in read_json(path)
        ]
    except (UserError, OSError, LookupError, TypeError):
        return []
