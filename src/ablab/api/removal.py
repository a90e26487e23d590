"""Removal of runs: aside, to superseded/, where nothing is lost."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from ablab.api.card import size
from ablab.api.run import Run
from ablab.api.store import Store
from ablab.errors import BusyError, UserError
from ablab.files import read_json
from ablab.store.locks import locked
from ablab.store.records import Strict
from ablab.store.run_folder import CARD

ASIDE = "superseded"


class Removed(Strict):
    """A run that is removed, or brought back. `to`: where it lies then; `erased`: the folder that is deleted."""

    run: str
    name: str
    bytes: int
    dependents: list[str]
    to: str | None = None
    erased: str | None = None


class RemovedRuns(Strict):
    """What was, or with `dry_run` would be, removed or brought back. `freed`: bytes of what was deleted."""

    dry_run: bool
    runs: list[Removed]
    freed: int = 0


def dependents_of(store: Store, run: Run) -> list[str]:
    """Return what depends on a run, a line for each: studies, reports, runs that began from it, and pruned models."""
    found = [f"study {name}" for name in store.studies if run.id in store.of_study(name)]
    found += [
        f"report {path.parent.name}" for path in sorted(store.path.glob("reports/*/report.json")) if _names(path, run)
    ]
    found += [f"run {other.id} began from its weights" for other in _began_from(store, run)]
    if run.folder.pruned.is_dir():
        found += [f"pruned model {path.name}" for path in sorted(run.folder.pruned.iterdir()) if path.is_dir()]
    return found


def _names(report: Path, run: Run) -> bool:
    try:
        return f'"{run.id}"' in report.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


def _began_from(store: Store, run: Run) -> Iterator[Run]:
    """Yield the runs whose training began from the weights of this one, or from those of its pruned models."""
    try:
        selected = run.record.selected if run.record is not None else None
        digests = {selected.sha256} if selected is not None else set()
        digests |= {read_json(card)["sha256"] for card in run.folder.pruned.glob(f"*/{CARD}")}
    except (UserError, OSError, LookupError, TypeError):
        digests = set()
    for other in store.runs():
        with suppress(UserError):  # what cannot be read names no origin
            if other.id != run.id and digests and other.recipe.get("init_from") in digests - {None}:
                yield other


def set_aside(store: Store, runs: Sequence[Run], *, dry_run: bool = False) -> RemovedRuns:
    """Move runs to superseded/, under their locks, with an entry in the register; BusyError if one is worked on.

    Nothing is moved unless all can be. Error for a run that does not lie in this store.
    """
    for run in runs:
        check_inside(store, run.path)
    removed = [
        Removed(run=run.id, name=run.name, bytes=size(run.path), dependents=dependents_of(store, run)) for run in runs
    ]
    if any(run.state == "running" for run in runs):
        busy = next(run.id for run in runs if run.state == "running")
        raise BusyError(f"{busy} is being worked on by another process; wait for it, or stop it")
    if dry_run:
        return RemovedRuns(dry_run=True, runs=removed)
    with ExitStack() as stack:
        for run in runs:
            stack.enter_context(locked(run.folder))
        moved = [
            one.model_copy(update={"to": str(run.folder.set_aside())}) for run, one in zip(runs, removed, strict=True)
        ]
    return RemovedRuns(dry_run=False, runs=moved)


def check_inside(store: Store, path: Path) -> None:
    """Raise UserError for a folder that is a link, or lies outside the store that is named."""
    inside = path.resolve().parent in {(store.path / name).resolve() for name in ("runs", ASIDE)}
    in_store = path.resolve().is_relative_to(store.path.resolve())
    if path.is_symlink() or not inside or not in_store:
        raise UserError(f"{path}: does not lie in the store {store.path}; allowed: outputs=<its store>")
