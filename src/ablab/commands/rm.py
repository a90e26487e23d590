"""The `rm` command: set runs aside, or delete for ever what was set aside."""

from collections.abc import Sequence

from ablab.api import Run, Store
from ablab.api import open as open_store
from ablab.api.removal import Removal, Removed, aside_ids, erase, set_aside
from ablab.commands.options.base import read_words
from ablab.commands.options.stored import RmOptions
from ablab.commands.outputs import say_json
from ablab.commands.show import size_of
from ablab.console import Console
from ablab.errors import DONE, UserError


def rm(arguments: Sequence[str]) -> int:
    """Remove runs."""
    options = read_words(RmOptions, arguments)
    given = [key for key in ("run", "runs", "where") if getattr(options, key) is not None]
    if len(given) != 1:
        raise UserError("rm: say one of run=<id>, runs=<id>,<id>, and where='key=value'")
    store = open_store(options.outputs)
    chosen, aside = _chosen(store, options)
    done = set_aside(store, chosen, dry_run=options.dry_run)
    if options.forever:
        done = _erased(store, done, aside, dry_run=options.dry_run)
    if options.format == "json":
        say_json(done)
        return DONE
    _say(done, Console(), forever=options.forever)
    return DONE


def _chosen(store: Store, options: RmOptions) -> tuple[list[Run], list[str]]:
    """Return the runs that are meant, and the ids of those that lie in superseded/ already."""
    if options.where is not None:
        if not options.where.split():
            raise UserError("where=: say which runs, such as where='state=failed'")
        found = list(store.runs(options.where))
        if not found:
            raise UserError(f"where={options.where}: no run in {store.path}/runs is like that")
        return found, []
    references = [options.run] if options.run is not None else [one for one in (options.runs or "").split(",") if one]
    if not references:
        raise UserError(f"runs={options.runs}: names no run; allowed: run ids with commas between")
    there = aside_ids(store) if options.forever else []
    aside = [reference for reference in references if reference in there]
    runs = [store.run(reference) for reference in references if reference not in aside or _is_there(store, reference)]
    return list({run.id: run for run in runs}.values()), aside


def _is_there(store: Store, run_id: str) -> bool:
    return (store.folder(run_id).path / "recipe.yaml").exists()


def _erased(store: Store, done: Removal, aside: Sequence[str], *, dry_run: bool) -> Removal:
    ids = dict.fromkeys([*(one.run for one in done.runs), *aside])
    moved = {one.run: one for one in done.runs}
    found: list[Removed] = []
    for run_id in ids:
        gone, before = erase(store, run_id, dry_run=dry_run), moved.get(run_id)
        if before is not None and gone is not None:
            more = before.bytes if dry_run else 0  # of a dry run, the run itself lies in runs/ still
            gone = before.model_copy(update={"bytes": gone.bytes + more, "to": None, "erased": gone.erased})
        found += [one for one in (gone or before,) if one is not None]
    return Removal(dry_run=dry_run, runs=found, freed=0 if dry_run else sum(one.bytes for one in found))


def _say(done: Removal, console: Console, *, forever: bool) -> None:
    for one in done.runs:
        what = "would be " * done.dry_run + ("deleted for ever" if forever else "set aside")
        console.say(f"{one.run}  {one.name}  {what}, {size_of(one.bytes)}".replace("    ", "  "))
        for line in one.hangs:
            console.say(f"  on it hangs: {line}")
    if done.dry_run:
        console.say("Nothing was done: dry_run=true")
    elif forever:
        console.say(f"{size_of(done.freed)} freed; the same train line trains such a run again")
    else:
        console.say("Nothing was deleted; to free the disk: the same line with forever=true")
        console.say(f"Results: {', '.join(one.to for one in done.runs if one.to)}")
