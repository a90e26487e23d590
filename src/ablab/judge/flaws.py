"""Flaws of a selection: where runs and registrations are not what the store's register has of them.

Results were edited, deleted, made again, or the register does not know them. Each flaw is one line. It marks the claims
as exploratory, and stands at the top of the report.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ablab.errors import UserError
from ablab.files import read_json
from ablab.judge.families import registered_before, sharing
from ablab.judge.left_out import added_seeds, left_out
from ablab.judge.runs import ArmRun
from ablab.judge.selection import SelectedArms
from ablab.store.chain import RECORD, Chain, History
from ablab.store.pack import PackIndex, unpacked
from ablab.store.register import CLAIMS, LOOP, OF_STUDIES, as_entered, file_digest
from ablab.store.run_folder import RunFolder
from ablab.study.study_file import entries_of

MOST_NAMED = 5
"""Runs, files or lines named in a flaw."""

FROM_ELSEWHERE = "came from elsewhere, or the end of the register was cut"

NO_REGISTER = "the store has no register: it is older than registers, or its register was deleted"
OLDER = "the study was registered before the register began"
GONE = "runs that had ended are gone"
SET_ASIDE = "runs that had ended were set aside (rerun or rm)"
DELETED = "runs that had ended were deleted and trained again"
REMADE = "results were deleted and made again"


def checked(selection: SelectedArms) -> SelectedArms:
    """Return the selection with its flaws, the register's stamp, and what else the store has about its runs.

    Runs must have been read before the register is: one that ends now is then missing, and not unknown.
    """
    chain = Chain.of(selection.outputs)
    lost = [stamp for stamp in _stamps(selection.folder / "report.json") if not chain.bears(stamp)]
    flaws = [
        *([] if chain.digests else [NO_REGISTER]),
        *map(_lost, lost),
        *(
            [OLDER]
            if selection.study is not None and _place(selection.study, "registered") in chain.older_files
            else []
        ),
        *broken(chain, [] if selection.study is None else [selection.study]),
        *_of_runs(chain, selection),
    ]
    others = sharing(selection)
    notes = [
        *selection.notes,
        *added_seeds(selection),
        *_shared(selection, chain, list(dict.fromkeys(one.name for one in others))),
        *left_out(selection, chain),
    ]
    return replace(selection, flaws=flaws, notes=notes, sharing=others, stamp=chain.stamp, lost_stamps=lost)


def _shared(selection: SelectedArms, chain: Chain, others: Sequence[str]) -> Iterator[str]:
    """Yield notes on other studies that were registered on the same runs, and on those that may have been."""
    if others:
        count = "1 other study" if len(others) == 1 else f"{len(others)} other studies"
        yield f"{count} registered claims about these runs: {named(others)}"
    studies = selection.outputs / "studies"
    gone = [name for name in registered_before(selection, chain) if any(_of_file(chain, studies / name, "registered"))]
    index = unpacked(selection.outputs)
    absent = [name for name in gone if index is not None and index.lacks(_place(studies / name, "registered"))]
    if absent:
        yield f"what other studies registered before these runs was not packed: {named(absent)}"
    if gone := [name for name in gone if name not in absent]:
        yield f"what other studies registered before these runs is gone or was edited: {named(gone)}"


def broken(chain: Chain, studies: Iterable[Path]) -> Iterator[str]:
    """Yield where a register does not hold, and where what studies keep beside their runs is not what was entered."""
    if chain.unreadable:
        yield f"lines of the register cannot be read: {named(chain.unreadable)}"
    if chain.broken:
        yield (
            "the register is broken, since lines do not follow those before them, of which some were changed, moved, "
            f"removed or put in: {named(chain.broken)}"
        )
    for study in studies:
        if not chain.digests:
            if any("content" in entry for entry in entries_of(study / "registered.json")):  # later than registers
                yield f"the register is gone, in which {study.name} was registered"
            continue
        # Of another study than its own, which lists its runs, an archive has the claims alone.
        index = unpacked(study.parents[1])
        for what in OF_STUDIES:
            if index is None or _is_own(study, index) or not index.lacks(_place(study, what)):
                yield from _of_file(chain, study, what)


def broken_claims(chain: Chain, store: Path) -> Iterator[str]:
    """Yield where what was registered of tables is not what was entered."""
    for entry in chain.entries:
        if entry.what == CLAIMS and entry.path is not None:
            if not (store / entry.path).exists():
                yield f"{entry.path} is gone, and was registered on {entry.at[:10]}"
            elif file_digest(store / entry.path) != entry.digest:
                yield f"{entry.path} is not what was entered: it was edited"


def _is_own(study: Path, index: PackIndex) -> bool:
    """Return whether an archive is of this study, and not only of runs that it claimed something about."""
    return study.name == index.name or (study / "runs.json").exists()


def gone_of(chain: Chain, studies: Iterable[Path], there: Container[str]) -> Iterator[str]:
    """Yield the runs that studies list or were last registered with, and that had ended, by the register, where they
    are not there any more.
    """
    listed = dict[str, None]()
    for study in studies:
        listed |= dict.fromkeys(str(row.get("run_id")) for row in entries_of(study / "runs.json"))
        index, known = unpacked(study.parents[1]), entries_of(study / "registered.json")
        if known and (index is None or _is_own(study, index)):
            listed |= dict.fromkeys(known[-1].get("planned", ()))
    ended = {run for run, history in chain.histories.items() if history.has_ended}
    if gone := [run for run in listed if run in ended and run not in there]:
        yield f"{GONE}: {named(gone)}"


def _stamps(report: Path) -> list[str]:
    """Return the stamps of earlier reports of the same name: of the last one, and those that it had missed itself."""
    try:
        earlier = read_json(report)
        return list(dict.fromkeys([*earlier.get("lost_stamps", []), *filter(None, [earlier.get("stamp")])]))
    except (OSError, UserError, AttributeError):
        return []


def _lost(stamp: str) -> str:
    return (
        f"an earlier report of this name bears register {stamp}, which this register never had: its end was cut, or "
        "it was replaced"
    )


def _of_file(chain: Chain, study: Path, what: str) -> Iterator[str]:
    path, entries = study / f"{what}.json", chain.of_study(study.name, what)
    digest = chain.files.get(_place(study, what))
    there = as_entered(path, digest)
    when = f" on {entries[0].at[:10]}" if entries else ""
    was = "the loop began" if what == LOOP else f"the study was {what}"
    if digest is None:
        if path.exists():
            yield f"{path.name} was never entered in the register: it {FROM_ELSEWHERE}"
    elif not there.exists():
        yield f"{path.name} is gone, and {was}{when}"
    elif file_digest(there) != digest:
        yield f"{path.name} is not what was entered: it was edited"
    elif what != LOOP and (left := len(entries_of(there))) < len(entries):
        yield f"{path.name} was made anew: {was}{when}, and {left} of {len(entries)} entries are left"


def _place(study: Path, what: str) -> str:
    return f"studies/{study.name}/{what}.json"


def _of_runs(chain: Chain, selection: SelectedArms) -> Iterator[str]:
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
    yield from ((kind, name) for kind in trained_again(history, run.folder))
    if not history.has_ended:
        if run.record is not None:
            yield f"runs that the register does not know, so that they {FROM_ELSEWHERE}", name
    elif not as_entered(path / RECORD, history.files.get(RECORD)).exists():
        yield GONE, name
    else:
        yield from ((kind, f"{name}/{file}") for kind, file in _of_files(history, run))


def _of_files(history: History, run: ArmRun) -> Iterator[tuple[str, str]]:
    relied = {*_relied_on(run)}
    for file in sorted(relied | set(history.files)):
        digest = history.files.get(file)
        path = as_entered(run.folder.path / file, digest)
        if digest is None:
            if not history.is_older:
                yield f"results that the register does not know, so that they {FROM_ELSEWHERE}", file
        elif not path.exists():
            yield "results that were entered are gone", file
        elif file in relied and file_digest(path) != digest:
            yield "results are not what was entered: they were edited", file
        elif file in relied and file in history.made_again:
            yield REMADE, file


def is_history(flaw: str) -> bool:
    """Return whether a flaw is of what was there before: what is there now is what was entered last."""
    return flaw.startswith((OLDER, SET_ASIDE, DELETED, REMADE))


def trained_again(history: History, folder: RunFolder) -> Iterator[str]:
    """Yield what became of a run after it had ended. A kill may have left a move to superseded/ without its entry."""
    aside: set[str | None] = set()
    if history.replaced:
        aside = {file_digest(path) for path in folder.outputs.glob(f"superseded/{folder.run_id}-*/{RECORD}")}
    moved = sum(digest in aside for digest in history.replaced)
    if history.times_set_aside + moved:
        yield SET_ASIDE + " and trained again" * history.has_ended
    if len(history.replaced) > moved:
        yield DELETED


def _relied_on(run: ArmRun) -> Iterator[str]:
    """Yield the files that the report takes figures of the run from."""
    yield RECORD
    if run.evaluation is not None:
        yield f"evaluations/{run.evaluation.evaluation_id}.json"
    yield from (f"curves/{curve.curve_id}.json" for curve in run.curves)


def named(things: Sequence[object]) -> str:
    """Return the first of the things, separated by commas."""
    return ", ".join(str(thing) for thing in things[:MOST_NAMED]) + ", ..." * (len(things) > MOST_NAMED)
