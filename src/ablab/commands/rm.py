"""The `rm` command: set runs aside, bring them back, or delete what was set aside."""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import cached_property, partial
from itertools import compress
from pathlib import Path

from ablab.api import open as open_store
from ablab.api.run import Run
from ablab.api.store import Runs, Store, with_sizes
from ablab.commands.options import RmOptions
from ablab.errors import DONE, BusyError, UserError
from ablab.files import read_json, size
from ablab.files.disk import move
from ablab.store.chain import RECORD
from ablab.store.locks import locked
from ablab.store.records import Strict
from ablab.store.register import Register, file_digest
from ablab.store.run_folder import CARD, RunFolder
from ablab.tasks.conditions import ENDED, meeting, near_miss
from ablab.tasks.verbs import read_words, say_json
from ablab.text import how_many, size_of
from ablab.tracking.console import Console

ASIDE = "superseded"


class Removed(Strict):
    """A run that is removed, or brought back. `to`: where it lies then; `erased`: the folder that is deleted.

    `label`: what people call its arm, and its seed.
    """

    run: str
    name: str
    label: str = ""
    bytes: int
    dependents: list[str]
    to: str | None = None
    erased: str | None = None


class RemovedRuns(Strict):
    """What was, or with `dry_run` would be, removed or brought back. `freed`: bytes of what was deleted."""

    dry_run: bool
    runs: list[Removed]
    freed: int = 0


class Dependents:
    """What depends on runs of a store, which is read once for all of them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._studies = {name: store.of_study(name) for name in store.studies}
        self._reports = {path.parent.name: _text(path) for path in sorted(store.path.glob("reports/[!.]*/report.json"))}

    def of(self, run: Run) -> list[str]:
        """Return a line for each: studies, reports, runs that began from it, and pruned models."""
        found = [f"study {name}" for name, runs in self._studies.items() if run.id in runs]
        found += [f"report {name}" for name, text in self._reports.items() if f'"{run.id}"' in text]
        origins = _origins(run)
        begun = [other for origin in origins for other in self._begun.get(origin, []) if other != run.id]
        found += [f"run {other} began from its weights" for other in dict.fromkeys(begun)]
        if run.folder.pruned.is_dir():
            found += [f"pruned model {path.name}" for path in sorted(run.folder.pruned.iterdir()) if path.is_dir()]
        return found

    @cached_property
    def _begun(self) -> dict[str, list[str]]:
        """The runs whose training began from weights, by their digest."""
        begun: dict[str, list[str]] = {}
        for run in self.store.runs():
            with suppress(UserError):  # what cannot be read names no origin
                if (origin := run.recipe.get("init_from")) is not None:
                    begun.setdefault(str(origin), []).append(run.id)
        return begun


def _text(report: Path) -> str:
    try:
        return report.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _origins(run: Run) -> set[str]:
    """Return the digests of the weights of a run, and of those of its pruned models."""
    try:
        selected = run.record.selected if run.record is not None else None
        digests = {selected.sha256} if selected is not None else set()
        digests |= {read_json(card)["sha256"] for card in run.folder.pruned.glob(f"*/{CARD}")}
        return {str(digest) for digest in digests if digest is not None}
    except (UserError, OSError, LookupError, TypeError):
        return set()


def set_aside(store: Store, runs: Sequence[Run], *, dry_run: bool = False) -> RemovedRuns:
    """Move runs to superseded/, under their locks, with an entry in the register; BusyError if one is worked on.

    Nothing is moved if one is being worked on as all are asked; then they are moved one after another. Error for a
    run that does not lie in this store, or was set aside before.
    """
    for run in runs:
        check_inside(store, run.path)
        if run.path.parent.name == ASIDE:
            raise UserError(f"{run.id}: was set aside already; allowed: with undo=true or forever=true")
    dependents = Dependents(store)
    removed = [Removed(run=run.id, **_called(run), bytes=size(run.path), dependents=dependents.of(run)) for run in runs]
    for busy in (run.id for run in runs if run.state == "running"):
        raise BusyError(f"{busy} is being worked on by another process; wait for it, or stop it")
    if dry_run:
        return RemovedRuns(dry_run=True, runs=removed)
    for run in runs:  # one after another: a process may not hold as many files as there are runs
        with locked(run.folder):
            pass
    moved = []
    for run, one in zip(runs, removed, strict=True):
        with locked(run.folder):
            moved.append(one.model_copy(update={"to": str(run.folder.set_aside())}))
    return RemovedRuns(dry_run=False, runs=moved)


def check_inside(store: Store, path: Path) -> None:
    """Raise UserError for a folder that is a link, or lies outside the store that is named."""
    inside = path.resolve().parent in {(store.path / name).resolve() for name in ("runs", ASIDE)}
    if path.is_symlink() or not inside:
        raise UserError(f"{path}: does not lie in the store {store.path}; allowed: outputs=<its store>")


def superseded(store: Store, where: str = "") -> Runs:
    """Return the runs in superseded/ that meet these conditions; `id`: the folder's name, the run id and a number."""
    folders = sorted(path for path in (store.path / ASIDE).glob("r*-*") if path.is_dir())
    arms = store.arms()  # as it was planned before it was set aside
    found = [Run(RunFolder(path), arms.get(path.name.rpartition("-")[0])) for path in folders]
    return Runs(compress(found, meeting(with_sizes(found, where), where)))


def find_superseded(store: Store, reference: str) -> list[Run]:
    """Return all that was set aside of the run with this id, beginning of an id, or display name, or one by its folder.

    UserError for what names none, or several runs.
    """
    typed, there = f"run={reference}", superseded(store)
    reference = Path(reference).name  # of a path, which named it before it was set aside
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
        _check_is_free(store, origin)
        place = store.folder(origin).path
        brought.append(Removed(run=origin, **_called(run), bytes=size(run.path), dependents=[], to=str(place)))
    for one, run in zip(brought, last.values(), strict=True) if not dry_run else ():
        with locked(store.folder(one.run)):
            _check_is_free(store, one.run)
            record = run.path / RECORD
            digest = {"digest": file_digest(record)} if record.exists() else {}
            Register(store.path).append("restored", run=one.run, **digest)
            move(run.path, Path(str(one.to)))
    return RemovedRuns(dry_run=dry_run, runs=brought)


def _check_is_free(store: Store, origin: str) -> None:
    place = store.folder(origin).path
    if place.exists():
        raise UserError(f"{origin}: lies in {place.parent} again; set that one aside first, or leave it there")


def erase(store: Store, runs: Sequence[Run], *, dry_run: bool = False) -> RemovedRuns:
    """Delete runs in superseded/. The register keeps that they were there; it is told first.

    Error for a folder that does not lie there.
    """
    for run in runs:
        _check_lies_aside(store, run)
    removed = [
        Removed(run=origin_of(run), **_called(run), bytes=size(run.path), dependents=[], erased=str(run.path))
        for run in runs
    ]
    if dry_run:
        return RemovedRuns(dry_run=True, runs=removed)
    for run in runs:
        Register(store.path).append("erased", run=origin_of(run))
        shutil.rmtree(run.path)
    return RemovedRuns(dry_run=False, runs=removed, freed=sum(one.bytes for one in removed))


def _called(run: Run) -> dict[str, str]:
    seed = "" if run.damage is not None else f", seed {run.seed}"
    return {"name": run.name, "label": f"{run.label}{seed}" if run.label else run.name}


def _number(run: Run) -> int:
    number = run.id.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _check_lies_aside(store: Store, run: Run) -> None:
    check_inside(store, run.path)
    if run.path.parent.name != ASIDE:
        raise UserError(f"{run.id}: lies in {run.path.parent}; allowed: runs that were set aside")


def rm(arguments: Sequence[str]) -> int:
    """Remove runs."""
    options = read_words(RmOptions, arguments)
    given = [key for key in ("run", "runs", "where") if getattr(options, key) is not None]
    if options.older is not None and given not in ([], ["where"]):
        raise UserError(f"older={options.older}: runs are named; allowed: alone, or with where=")
    if len(given) != 1 and options.older is None:
        raise UserError("rm: say one of run=<id>, runs=<id>,<id>, where='key=value' and older=30d")
    if options.forever and options.undo:
        raise UserError("rm: forever=true deletes what undo=true would bring back; say one of them")
    store = open_store(options.outputs)
    act = restore if options.undo else erase if options.forever else set_aside
    done = act(store, _meant(store, options), dry_run=options.dry_run)
    if options.format == "json":
        say_json(done)
        return DONE
    _say(done, Console(), options)
    return DONE


def _meant(store: Store, options: RmOptions) -> list[Run]:
    """Return the runs that are meant: those that were set aside where they are to be brought back or deleted."""
    is_aside = options.undo or options.forever
    if options.where is None and options.older is None:
        named = partial(find_superseded, store) if is_aside else lambda reference: [store.run(reference)]
        return list({run.id: run for reference in _references(options) for run in named(reference)}.values())
    where = options.where or ""
    if not f"{where} {options.older or ''}".split():
        raise UserError("where=: say which runs, such as where='state=failed'")
    find = partial(superseded, store) if is_aside else store.runs
    if not (found := list(find(f"{where} {_as_condition(options.older)}"))):
        hint = near_miss([run.values for run in find("")], where)
        typed = [f"where={where}"] * bool(where) + [f"older={options.older}"] * bool(options.older)
        place = f"{store.path}/{ASIDE if is_aside else 'runs'}"
        raise UserError(f"{' '.join(typed)}: no run in {place} is like that{hint}")
    return found


def _as_condition(older: str | None) -> str:
    """Return the condition on the day of the end that an age is."""
    if older is None:
        return ""
    today = datetime.now(timezone.utc).date()  # as records have it
    return f"{ENDED}<={(today - timedelta(days=int(older.removesuffix('d')))).isoformat()}"


def _references(options: RmOptions) -> list[str]:
    if options.run is not None:
        return [options.run]
    if not (references := [one for one in (options.runs or "").split(",") if one]):
        raise UserError(f"runs={options.runs}: names no run; allowed: run ids with commas between")
    return references


def _say(done: RemovedRuns, console: Console, options: RmOptions) -> None:
    what = "brought back" if options.undo else "deleted" if options.forever else "set aside"
    for one in done.runs:
        said = "would be " * done.dry_run + what
        console.say("  ".join(filter(None, (one.run, one.label, said, size_of(one.bytes)))))
        for line in one.dependents:
            console.say(f"  depends on it: {line}")
    if len(done.runs) > 1:
        console.say(f"{how_many(len(done.runs), 'run')}, {size_of(sum(one.bytes for one in done.runs))} in all")
    if done.dry_run:
        console.say("Nothing was done: dry_run=true")
    elif options.forever:
        console.say(f"{size_of(done.freed)} freed; the same train line trains such a run again")
    elif not options.undo:
        console.say("Nothing was deleted. The same line with undo=true brings the runs back, with forever=true it")
        console.say("deletes them.")
    if where := ", ".join(one.to for one in done.runs if one.to and not done.dry_run):
        console.say(f"Results: {where}")
