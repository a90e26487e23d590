"""Finding finished runs by what a user types: a run id, a prefix of one, a display name, or a path."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ablab.errors import UserError
from ablab.store.records import Record
from ablab.store.run_folder import CARD, RunFolder, all_runs

LISTED = 10
"""Maximum number of runs that a message lists."""


@dataclass(frozen=True)
class FinishedRun:
    """A run whose training has ended, and its record."""

    folder: RunFolder
    record: Record

    @property
    def run_id(self) -> str:
        return self.folder.run_id


def open_runs(run: str | None, runs: str | None, outputs: Path, *, selected: bool = False) -> list[FinishedRun]:
    """Open the run of `run=`, or each of `runs=` once; UserError unless exactly one of the two is given.

    `selected`: refuse runs that have no selected weights.
    """
    if (run is None) == (runs is None):
        raise UserError("run: say which finished run, run=<id>, or several, runs=<id>,<id>")
    if run is not None:
        return [open_run(run, outputs, selected=selected)]
    references = [reference for reference in (runs or "").split(",") if reference]
    if not references:
        raise UserError(f"runs={runs}: names no run; allowed: run ids or paths with commas between")
    opened = [open_run(reference, outputs, key="runs", selected=selected) for reference in references]
    return list({one.folder.path.resolve(): one for one in opened}.values())


def open_run(reference: str, outputs: Path, *, key: str = "run", selected: bool = False) -> FinishedRun:
    """Open the finished run that a reference names; UserError if it has not finished.

    `key`: the key under which the reference was typed. `selected`: refuse a run that has no selected weights.
    """
    folder = find_run(reference, outputs, key=key)
    record = folder.record()
    typed = f"{key}={reference}: {folder.run_id}"
    if record is None:
        raise UserError(f"{typed} has not finished; type its train line again")
    if selected and record.selected is None:
        raise UserError(f"{typed} diverged ({record.reason}); it has no weights to use")
    return FinishedRun(folder, record)


def _name(run: RunFolder) -> str | None:
    """Return the display name of a run; None without a readable record, which hides no other run."""
    with suppress(UserError):
        record = run.record()
        return None if record is None else record.name
    return None


def find_run(reference: str, outputs: Path, *, key: str = "run") -> RunFolder:
    """Return the run with this path, id, unambiguous prefix of an id, or display name; UserError if not exactly one."""
    typed = f"{key}={reference}"
    path, is_model = Path(reference), False
    with suppress(OSError):  # a display name may be longer than a path
        is_model = (path / CARD).exists()
        is_run = path.parent.name == "runs" and RunFolder(path).has_begun and not is_model
        if is_run or (path / "record.json").exists():
            return RunFolder(path.resolve() if path.is_symlink() else Path(os.path.abspath(path)))
    if is_model:
        raise UserError(f"{typed}: a model that was cut out of a run; allowed here: the run itself")
    runs = list(all_runs(outputs))
    exact = [run for run in runs if run.run_id == reference]
    found = exact or [run for run in runs if reference and run.run_id.startswith(reference)]
    if not found:
        found = [run for run in runs if _name(run) == reference]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"{typed}: several runs match: {', '.join(run.run_id for run in found)}")
    known = [run.run_id for run in runs]
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    there = ", ".join(known[:LISTED]) or "none"
    raise UserError(f"{typed}: no such run in {outputs}/runs; there are {there}{more}")
