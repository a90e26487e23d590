"""The `rm` command: set runs aside, bring them back, or delete what was set aside."""

from collections.abc import Callable, Iterable, Sequence

from ablab.api import Run, Store
from ablab.api import open as open_store
from ablab.api.removal import ASIDE, RemovedRuns, erase, find_superseded, restore, set_aside, superseded
from ablab.commands.options import RmOptions
from ablab.commands.show import size_of
from ablab.errors import DONE, UserError
from ablab.store.conditions import near_miss
from ablab.tasks.verbs import read_words, say_json
from ablab.tracking.console import Console


def rm(arguments: Sequence[str]) -> int:
    """Remove runs."""
    options = read_words(RmOptions, arguments)
    given = [key for key in ("run", "runs", "where") if getattr(options, key) is not None]
    if len(given) != 1:
        raise UserError("rm: say one of run=<id>, runs=<id>,<id>, and where='key=value'")
    if options.forever and options.undo:
        raise UserError("rm: forever=true deletes what undo=true would bring back; say one of them")
    store = open_store(options.outputs)
    if options.undo:
        done = restore(store, _aside(store, options), dry_run=options.dry_run)
    elif options.forever:
        done = erase(store, _aside(store, options), dry_run=options.dry_run)
    else:
        done = set_aside(store, _there(store, options), dry_run=options.dry_run)
    if options.format == "json":
        say_json(done)
        return DONE
    _say(done, Console(), options)
    return DONE


def _there(store: Store, options: RmOptions) -> list[Run]:
    """Return the runs in runs/ that are meant."""
    if options.where is not None:
        return _meant(options.where, store.runs, f"{store.path}/runs")
    return _distinct(store.run(reference) for reference in _references(options))


def _aside(store: Store, options: RmOptions) -> list[Run]:
    """Return the runs in superseded/ that are meant: nothing else is deleted or brought back."""
    if options.where is not None:
        return _meant(options.where, lambda where: superseded(store, where), f"{store.path}/{ASIDE}")
    return _distinct(run for reference in _references(options) for run in find_superseded(store, reference))


def _meant(where: str, find: Callable[[str], Sequence[Run]], place: str) -> list[Run]:
    if not where.split():
        raise UserError("where=: say which runs, such as where='state=failed'")
    if not (found := list(find(where))):
        hint = near_miss([run.values for run in find("")], where)
        raise UserError(f"where={where}: no run in {place} is like that{hint}")
    return found


def _references(options: RmOptions) -> list[str]:
    if options.run is not None:
        return [options.run]
    if not (references := [one for one in (options.runs or "").split(",") if one]):
        raise UserError(f"runs={options.runs}: names no run; allowed: run ids with commas between")
    return references


def _distinct(runs: Iterable[Run]) -> list[Run]:
    return list({run.id: run for run in runs}.values())


def _say(done: RemovedRuns, console: Console, options: RmOptions) -> None:
    what = "brought back" if options.undo else "deleted" if options.forever else "set aside"
    for one in done.runs:
        said = "would be " * done.dry_run + what
        console.say("  ".join(filter(None, (one.run, one.name, said, size_of(one.bytes)))))
        for line in one.dependents:
            console.say(f"  depends on it: {line}")
    if done.dry_run:
        console.say("Nothing was done: dry_run=true")
    elif options.forever:
        console.say(f"{size_of(done.freed)} freed; the same train line trains such a run again")
    elif not options.undo:
        console.say("Nothing was deleted. The same line with undo=true brings the runs back, with forever=true it")
        console.say("deletes them.")
    if where := ", ".join(one.to for one in done.runs if one.to and not done.dry_run):
        console.say(f"Results: {where}")
