"""The `verify` command: walk from the figures of runs, or of an archive, to the bytes they rest on."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ablab.commands.options import VerifyOptions
from ablab.commands.verification import Reported, Verified, all_hold, ended_of, faults_of, verify_runs, verify_stamps
from ablab.errors import DONE, FAILED, UserError
from ablab.judge.departures import departures, departures_of_archive
from ablab.judge.flaws import broken, broken_claims, checked, gone_of
from ablab.judge.registration import Registered, listed, misplaced
from ablab.judge.selection import SelectedArms
from ablab.judge.selection_ad_hoc import of_finished, of_loop
from ablab.judge.selection_of_kept import of_kept
from ablab.judge.selection_of_study import of_study
from ablab.store.chain import Chain
from ablab.store.finished import FinishedRun, find_run, open_run
from ablab.store.pack import PackIndex, unpack, unpacked
from ablab.store.register import CLAIMS, REGISTER
from ablab.store.run_folder import RunFolder
from ablab.store.stamps import HeldStamp, held_stamps
from ablab.study.definition import define
from ablab.study.loop import ledger_of
from ablab.study.study_file import kept
from ablab.tasks.verbs import say_json, split_words
from ablab.text import how_many
from ablab.tracking.console import Console


def verify(arguments: Sequence[str]) -> int:
    """Check the digests of all that the runs rest on, and score their translations again; return 0 if all hold."""
    options, words = split_words(VerifyOptions, arguments)
    given = [key for key in ("run", "runs", "archive") if getattr(options, key) is not None]
    if len(given) + bool(words) > 1 or not (given or words or options.stamp):
        raise UserError("verify: say one of run=<id>, runs=<id>,<id>, experiment=<name>, archive=<file>, or stamp=")
    stamps = [] if options.stamp is None else held_stamps(options.stamp)
    if any(word.startswith("table=") for word in words):
        raise UserError(
            "verify: table= holds figures of runs from elsewhere, and nothing that they rest on; "
            "allowed: `report table=`, which judges them"
        )
    console = Console(stderr=options.format == "json")
    if options.archive is not None:
        try:
            told = _archive(Path(options.archive), stamps, console)
        except RecursionError:
            raise UserError(f"archive={options.archive}: JSON in it is nested too deeply to be read") from None
    elif given or words:
        told = _selected(options, words, stamps, console)
    else:
        told = _register(Path(options.outputs), stamps, console)
    console.say_all(_in_all(told))
    if options.format == "json":
        say_json(told)
    return DONE if told.holds else FAILED


def _in_all(told: Verified) -> Iterator[str]:
    """Yield what was found, and what could not be: only a stamp shows that a register is the one that was."""
    if not told.holds:
        yield "Not all of it holds: what does not stands above, of each run the first broken link."
        return
    notes = f", with {how_many(len(told.notes), 'note')} above" if told.notes else ""
    yield f"All that was checked holds{notes}."
    if not told.held:
        yield (
            "No stamp was given. Whoever can write the store can write its register anew; only a stamp that others "
            "hold shows that (stamp=)."
        )


def _selected(options: VerifyOptions, words: Sequence[str], stamps: Sequence[HeldStamp], console: Console) -> Verified:
    from ablab.config.grammar import store_words  # it imports Hydra, which help pages do without

    unreadable = list[str]()
    if options.run is None and options.runs is None:
        ledger = ledger_of(words, Path(options.outputs))
        chosen = of_kept(words, Path(options.outputs)) if ledger is None else of_loop(ledger)
        chosen = chosen or of_study(define((*words, *store_words(options.outputs))))
    else:
        key, typed = ("run", options.run or "") if options.runs is None else ("runs", options.runs)
        named = [typed] if key == "run" else [one for one in typed.split(",") if one] or [""]
        readable, unreadable = _read(key, named, Path(options.outputs))
        console.say_all(unreadable)
        if unreadable and not readable:
            return Verified(holds=False, faults=unreadable)
        chosen = of_finished(readable, f"{key}={typed}", Path(options.outputs))
    selection = checked(chosen)
    faults = [*unreadable, *faults_of(selection, console)]
    found = ended_of(selection)
    if not found and not faults:
        raise UserError(f"{selection.name}: none of its runs has ended in {selection.outputs}")
    studies = [] if selection.study is None else [selection.study]
    told = Verified(runs=verify_runs(found, console), faults=faults, notes=departures(selection))
    runs = {run.folder.run_id for run in selection.rests_on}
    return _with_register(told, Reported(Chain.of(_store_of(selection, stamps)), studies, runs), stamps, console)


def _read(key: str, references: Iterable[str], outputs: Path) -> tuple[list[FinishedRun], list[str]]:
    """Return the runs that can be read, and why the others cannot be read."""
    found, unreadable = list[FinishedRun](), list[str]()
    for reference in references:
        folder = find_run(reference, outputs, key=key)
        try:
            folder.record(), folder.recipe()
        except UserError as error:
            unreadable.append(str(error))
        else:
            found.append(open_run(reference, outputs, key=key))
    return found, unreadable


def _store_of(selection: SelectedArms, stamps: Sequence[HeldStamp]) -> Path:
    """Return the store of the runs, which paths may name; UserError where a stamp could be of the register of any."""
    stores = {run.folder.outputs.resolve(): run.folder.outputs for run in selection.rests_on}
    if len(stores) > 1 and stamps:
        raise UserError(f"stamp=: the runs are in {len(stores)} stores; allowed: with runs of one store")
    return next(iter(stores.values())) if len(stores) == 1 else selection.outputs


def _archive(path: Path, stamps: Sequence[HeldStamp], console: Console) -> Verified:
    """Verify an archive in a folder of its own: no store is needed, and nothing in it is imported or run."""
    with TemporaryDirectory(prefix="ablab-verify-") as name:
        folder = Path(name)
        index, chain = unpack(path, folder), Chain.of(folder)
        console.say(f"{path}: {index.name}, packed {index.made}, {how_many(len(index.files), 'file')} as packed")
        cut = [] if chain.stamp == index.stamp else [f"{REGISTER}: its end is not the one that was packed"]
        studies = _of_archive(folder, index, chain)
        is_packed = any(file.startswith(f"{CLAIMS}/") for file in index.files)  # not by archives of before
        runs, unreadable = _ended(folder, index)
        faults = [
            *(*cut, *broken(chain, studies), *gone_of(chain, studies, [run.run_id for run in runs]), *unreadable),
            *(broken_claims(chain, folder) if is_packed else ()),
            *_edited(studies, folder),
            *_misplaced(studies, runs, folder),
        ]
        try:
            notes = departures_of_archive(folder, chain, runs)
        except UserError as error:
            notes, faults = [], [*faults, _within(folder, error)]
        for fault in faults:
            console.say(fault)
        if any(file.startswith("reports/") for file in index.files):
            console.say("The report in it is not verified; unpack the archive, and make it again from the runs")
        told = Verified(runs=verify_runs(runs, console), faults=faults, notes=notes)
        return _with_register(told, Reported(chain, studies, set(index.runs)), stamps, console)


def _of_archive(folder: Path, index: PackIndex, chain: Chain) -> list[Path]:
    """Return the folders of its studies, and of its own study if that was registered, even where it is gone."""
    own = folder / "studies" / index.name
    return sorted({*_studies(folder), *([own] if chain.of_study(own.name, "registered") else ())})


def _ended(folder: Path, index: PackIndex) -> tuple[list[FinishedRun], list[str]]:
    """Return the runs of an archive, and what is wrong with those that cannot be read or are not there."""
    found, faults = list[FinishedRun](), list[str]()
    for run in (RunFolder(folder / "runs" / each) for each in index.runs):
        try:
            record = run.record()
            if record is None:
                faults.append(f"runs/{run.run_id}: it has no record, and is among the packed runs")
                continue
            run.recipe()  # what follows reads it, too
            found.append(FinishedRun(run, record))
        except UserError as error:
            faults.append(_within(folder, error))
    return found, faults


def _within(folder: Path, error: UserError) -> str:
    """Return an error about a file of an unpacked archive, without the folder, which is gone when it is read."""
    return str(error).replace(f"{folder}/", "")


def _misplaced(studies: Sequence[Path], runs: Sequence[FinishedRun], folder: Path) -> Iterator[str]:
    """Yield what the lists of studies have in the place of other runs."""
    known = {run.run_id: (run.record.condition_id, run.record.config.get("seed")) for run in runs}
    for study in studies:
        try:
            if (rows := listed(study)) and (study / "registered.json").exists():
                yield from (f"{study.name}: {line}" for line in misplaced(rows, known, Registered.every(study)))
        except UserError as error:
            yield _within(folder, error)


def _edited(studies: Sequence[Path], folder: Path) -> Iterator[str]:
    """Yield the files of studies that are not what was registered."""
    for study in studies:
        try:
            kept(study)
        except UserError as error:
            yield _within(folder, error)


def _register(store: Path, stamps: Sequence[HeldStamp], console: Console) -> Verified:
    """Verify the register of a store alone, with what it has of studies."""
    chain, studies = Chain.of(store), _studies(store)
    if unpacked(store) is None:  # an archive has not all studies of its register
        names = dict.fromkeys(entry.study for entry in chain.entries if entry.study)
        studies = sorted({*studies, *(store / "studies" / name for name in names)})
    if chain.stamp is None:
        raise UserError(f"outputs={store}: it has no {REGISTER}; allowed: a folder of outputs with one, or archive=")
    faults = [*broken(chain, studies), *broken_claims(chain, store)]
    for fault in faults:
        console.say(fault)
    return _with_register(Verified(faults=faults), Reported(chain, studies, chain.ended), stamps, console)


def _studies(store: Path) -> list[Path]:
    return sorted(path for path in store.glob("studies/*") if path.is_dir())


def _with_register(told: Verified, of: Reported, stamps: Sequence[HeldStamp], console: Console) -> Verified:
    """Say the notes and what the register is, and add what the stamps show of it."""
    chain = of.chain
    if chain.stamp is not None and not chain.broken and not chain.unreadable:
        console.say(f"register {chain.stamp}: its lines follow each other")
    for note in told.notes:
        console.say(f"Note: {note}")
    held = verify_stamps(stamps, of, console)
    holds = not told.faults and all_hold(told.runs) and all(stamp.holds for stamp in held)
    return told.model_copy(update={"holds": holds, "held": held, "stamp": chain.stamp})
