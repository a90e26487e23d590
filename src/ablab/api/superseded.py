"""Runs that were set aside to superseded/: found there, brought back, or deleted."""

import shutil
from collections.abc import Sequence

from ablab.api.card import size
from ablab.api.removal import ASIDE, Removed, RemovedRuns, check_inside
from ablab.api.run import Run
from ablab.api.store import Runs, Store
from ablab.errors import UserError
from ablab.store.chain import RECORD
from ablab.store.conditions import meeting
from ablab.store.register import Register, file_digest
from ablab.store.run_folder import RunFolder


def superseded(store: Store, where: str = "") -> Runs:
    """Return the runs in superseded/ that meet these conditions; `id`: the folder's name, the run id and a number."""
    folders = sorted(path for path in (store.path / ASIDE).glob("r*-*") if path.is_dir())
    found = [Run(RunFolder(path)) for path in folders]
    are_meant = meeting([run.values for run in found], where)
    return Runs(run for run, is_meant in zip(found, are_meant, strict=True) if is_meant)


def find_superseded(store: Store, reference: str, *, key: str = "run") -> list[Run]:
    """Return all that was set aside of the run with this id, beginning of an id, or display name, or one by its folder.

    UserError for what names none, or several runs.
    """
    typed, there = f"{key}={reference}", superseded(store)
    found = [run for run in there if reference in (run.id, origin_of(run))]
    found = found or [run for run in there if reference and run.id.startswith(reference)]
    found = found or [run for run in there if reference and run.name == reference]
    if len(ids := {origin_of(run) for run in found}) > 1:
        raise UserError(f"{typed}: several runs match: {', '.join(sorted(ids))}")
    if not found:
        raise UserError(f"{typed}: nothing of it lies in {store.path / ASIDE}; allowed: runs that were set aside")
    return found


def origin_of(run: Run) -> str:
    """Return the id that a run had before it was set aside."""
    return run.id.rpartition("-")[0]


def restore(store: Store, runs: Sequence[Run], *, dry_run: bool = False) -> RemovedRuns:
    """Move runs from superseded/ back to runs/; of one that was set aside several times, the last.

    The register is told first, so that the line can be typed again after a kill. Error if a run has been begun again.
    """
    last = {origin_of(run): run for run in sorted(runs, key=_number)}
    brought = []
    for origin, run in last.items():
        _check_lies_aside(store, run)
        place = store.folder(origin).path
        if place.exists():
            raise UserError(f"{origin}: lies in {place.parent} again; set that one aside first, or leave it there")
        brought.append(Removed(run=origin, name=run.name, bytes=size(run.path), dependents=[], to=str(place)))
    for one, run in zip(brought, last.values(), strict=True) if not dry_run else ():
        record = run.path / RECORD
        digest = {"digest": file_digest(record)} if record.exists() else {}
        Register(store.path).append("restored", run=one.run, **digest)
        shutil.move(run.path, str(one.to))
    return RemovedRuns(dry_run=dry_run, runs=brought)


def erase(store: Store, runs: Sequence[Run], *, dry_run: bool = False) -> RemovedRuns:
    """Delete runs in superseded/. The register keeps that they were there; it is told first.

    Error for a folder that does not lie there.
    """
    for run in runs:
        _check_lies_aside(store, run)
    removed = [
        Removed(run=origin_of(run), name=run.name, bytes=size(run.path), dependents=[], erased=str(run.path))
        for run in runs
    ]
    if dry_run:
        return RemovedRuns(dry_run=True, runs=removed)
    for run in runs:
        Register(store.path).append("erased", run=origin_of(run))
        shutil.rmtree(run.path)
    return RemovedRuns(dry_run=False, runs=removed, freed=sum(one.bytes for one in removed))


def _number(run: Run) -> int:
    number = run.id.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _check_lies_aside(store: Store, run: Run) -> None:
    check_inside(store, run.path)
    if run.path.parent.name != ASIDE:
        raise UserError(f"{run.id}: lies in {run.path.parent}; allowed: runs that were set aside")
