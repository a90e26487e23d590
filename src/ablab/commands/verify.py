"""The `verify` command: walk from the figures of runs, or of an archive, to the bytes they rest on."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ablab.commands.options import VerifyOptions
from ablab.commands.outputs import Verified
from ablab.console import Console
from ablab.errors import DONE, FAILED, UserError
from ablab.judge.flaws import broken
from ablab.judge.selection_ad_hoc import of_runs
from ablab.judge.selection_of_study import of_study
from ablab.judge.verify import all_hold, ended_of, faults_of, verify_runs
from ablab.store.chain import Chain
from ablab.store.finished import FinishedRun
from ablab.store.pack import unpack
from ablab.store.register import REGISTER
from ablab.store.run_folder import RunFolder
from ablab.study.definition import define
from ablab.tasks.verbs import say_json, split_words


def verify(arguments: Sequence[str]) -> int:
    """Check the digests of all that the runs rest on, and score their translations again; return 0 if all hold."""
    from ablab.config.grammar import spelled  # it imports Hydra, which help pages do without

    options, words = split_words(VerifyOptions, arguments)
    given = [key for key in ("run", "runs", "archive") if getattr(options, key) is not None]
    if len(given) + bool(words) != 1:
        raise UserError("verify: say one of run=<id>, runs=<id>,<id>, experiment=<name>, and archive=<file>")
    console = Console(stderr=options.format == "json")
    if options.archive is not None:
        told = _archive(Path(options.archive), console)
    else:
        told = _selected(options, [*words, f"outputs={spelled('outputs', str(options.outputs))}"], console)
    console.say(
        "All of it holds." if told.holds else "Not all of it holds: the first broken link of each run stands above."
    )
    if options.format == "json":
        say_json(told)
    return DONE if told.holds else FAILED


def _selected(options: VerifyOptions, words: Sequence[str], console: Console) -> Verified:
    if options.run is None and options.runs is None:
        selection = of_study(define(tuple(words)))
    else:
        selection = of_runs(options.run or options.runs or "", Path(options.outputs))
    faults = faults_of(selection, console)
    found = ended_of(selection)
    if not found and not faults:
        raise UserError(f"{selection.name}: none of its runs has ended in {selection.outputs}")
    runs = verify_runs(found, console)
    return Verified(holds=all_hold(runs) and not faults, runs=runs, faults=faults)


def _archive(path: Path, console: Console) -> Verified:
    """Verify an archive in a folder of its own: no store is needed, and nothing in it is imported or run."""
    with TemporaryDirectory(prefix="ablab-verify-") as folder:
        index = unpack(path, Path(folder))
        chain = Chain.of(Path(folder))
        console.say(f"{path}: {index.name}, packed {index.made}, {len(index.files)} files as they were packed")
        cut = [] if chain.stamp == index.stamp else [f"{REGISTER}: its end is not the one that was packed"]
        faults = [*cut, *broken(chain, sorted(path for path in Path(folder).glob("studies/*") if path.is_dir()))]
        for fault in faults:
            console.say(fault)
        if not faults:
            console.say(f"register {chain.stamp}: its lines follow each other")
        if any(file.startswith("reports/") for file in index.files):
            console.say("The report in it is not verified; unpack the archive, and make it again from the runs")
        runs = [RunFolder(Path(folder) / "runs" / run) for run in index.runs]
        found = [FinishedRun(run, record) for run in runs if (record := run.record()) is not None]
        verified = verify_runs(found, console, lacks=index.lacks, has_text=index.text)
        return Verified(holds=all_hold(verified) and not faults, runs=verified, faults=faults)
