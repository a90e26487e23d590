"""Flaws of runs: results that were edited, deleted, made again, or that the register does not know."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ablab.report.runs import ArmRun
from ablab.report.selection import SelectedArms
from ablab.store.chain import RECORD, Chain, History
from ablab.store.register import file_digest, waiting_for

MOST_NAMED = 5
"""Runs, files or lines named in a flaw."""

FROM_ELSEWHERE = "came from elsewhere, or the end of the register was cut"


def of_runs(chain: Chain, selection: SelectedArms) -> Iterator[str]:
    """Yield flaws of the runs, each kind once with all that have it. Runs of other stores are held to their registers.

    Where the selection's own store has no register, there is nothing to say of its runs.
    """
    own = selection.outputs.resolve()
    chains, found = {own: chain}, dict[str, list[str]]()
    for run in {run.folder.path.resolve(): run for run in selection.rests_on}.values():
        store = run.folder.outputs.resolve()
        if store not in chains:
            chains[store] = Chain.of(store)
        if store != own or chain.digests:
            for kind, what in _of_run(chains[store].histories.get(run.folder.run_id, History()), run):
                found.setdefault(kind, []).append(what)
    yield from (f"{kind}: {named(whats)}" for kind, whats in found.items())


def _of_run(history: History, run: ArmRun) -> Iterator[tuple[str, str]]:
    """Yield the kind of each flaw, and the run or file that has it."""
    name, path = run.folder.run_id, run.folder.path
    if path.parent.name == "superseded":
        return  # where it lies says what became of it
    yield from ((kind, name) for kind in _trained_again(history, run))
    if not history.has_ended:
        if run.record is not None:
            yield f"runs that the register does not know, so that they {FROM_ELSEWHERE}", name
    elif not lies(path / RECORD, history.files.get(RECORD)):
        yield "runs that had ended are gone", name
    else:
        yield from ((kind, f"{name}/{file}") for kind, file in _of_files(history, run))


def _of_files(history: History, run: ArmRun) -> Iterator[tuple[str, str]]:
    relied = {*_relied_on(run)}
    for file in sorted(relied | set(history.files)):
        path, digest = run.folder.path / file, history.files.get(file)
        if digest is None:
            if not history.is_older:
                yield f"results that the register does not know, so that they {FROM_ELSEWHERE}", file
        elif not lies(path, digest):
            yield "results that were entered are gone", file
        elif file in relied and is_another(path, digest):
            yield "results are not what was entered: they were edited", file
        elif file in relied and file in history.made_again:
            yield "results were deleted and made again", file


def _trained_again(history: History, run: ArmRun) -> Iterator[str]:
    """Yield what became of a run after it had ended. A kill may have left a move to superseded/ without its entry."""
    aside: set[str | None] = set()
    if history.replaced:
        aside = {file_digest(path) for path in run.folder.outputs.glob(f"superseded/{run.folder.run_id}-*/{RECORD}")}
    moved = sum(digest in aside for digest in history.replaced)
    if history.times_set_aside + moved:
        yield "runs that had ended were set aside (rerun)" + " and trained again" * history.has_ended
    if len(history.replaced) > moved:
        yield "runs that had ended were deleted and trained again"


def _relied_on(run: ArmRun) -> Iterator[str]:
    """Yield the files that the report takes figures of the run from."""
    yield RECORD
    if run.evaluation is not None:
        yield f"evaluations/{run.evaluation.evaluation_id}.json"
    yield from (f"curves/{curve.curve_id}.json" for curve in run.curves)


def lies(path: Path, digest: str | None) -> bool:
    """Return whether the file is there; between its entry and its naming, or if killed then, it waits beside."""
    return path.exists() or _waits(waiting_for(path), digest) or path.exists()


def _waits(waiting: Path, digest: str | None) -> bool:
    return waiting.exists() and file_digest(waiting) == digest


def is_another(path: Path, digest: str) -> bool:
    """Return whether the file is there, with other bytes than were entered."""
    return path.exists() and file_digest(path) != digest


def named(things: Sequence[object]) -> str:
    """Return the first of the things, separated by commas."""
    return ", ".join(str(thing) for thing in things[:MOST_NAMED]) + ", ..." * (len(things) > MOST_NAMED)
