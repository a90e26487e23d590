"""The `pack` command: one archive of what a report stands on, which `ablab verify archive=` checks anywhere."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from ablab.commands.options import PackOptions
from ablab.commands.verification import ended_of, faults_of
from ablab.errors import DONE, UserError
from ablab.judge.flaws import checked
from ablab.judge.selection_ad_hoc import of_loop, of_runs
from ablab.judge.selection_of_kept import of_kept
from ablab.judge.selection_of_study import of_study
from ablab.store.pack import Contents, has_no_texts
from ablab.store.pack import pack as write_pack
from ablab.store.records import now
from ablab.store.stamps import TRAILER, write_stamp
from ablab.study.definition import define
from ablab.study.loop import ledger_of
from ablab.tasks.verbs import split_words
from ablab.text import how_many, program
from ablab.tracking.console import Console


def pack(arguments: Sequence[str]) -> int:
    """Write the archive, and say where it lies and what it holds."""
    from ablab.config.grammar import store_words  # it imports Hydra, which help pages do without

    options, words = split_words(PackOptions, arguments)
    outputs = Path(options.outputs)
    if options.to is not None and Path(options.to).suffix != ".zip":
        raise UserError(f"to={options.to}: allowed: a name that ends in .zip, which the archive is")
    if (options.runs is None) == (not words):
        raise UserError("pack: say experiment=<name> or the words of a sweep, or runs=<id>,<id>")
    if words and (ledger := ledger_of(words, outputs)) is not None:
        selection, folders = of_loop(ledger), [ledger.folder]
    elif options.runs is None and (kept := of_kept(words, outputs)) is not None:
        selection, folders = kept, [outputs / "studies" / kept.name]
    elif options.runs is None:
        study = define((*words, *store_words(options.outputs)))
        selection = of_study(study)
        folders = [one.folder for one in (study, study.trials) if one is not None]
    else:
        selection, folders = of_runs(options.runs, outputs), []
    runs = {run.folder.path.resolve(): run.folder for run in ended_of(selection)}
    if not runs:
        raise UserError(f"{selection.name}: none of its runs has ended in {outputs}")
    has_text = options.text and not any(map(has_no_texts, runs.values()))
    path = Path(options.to) if options.to is not None else selection.outputs / "packs" / f"{selection.name}.zip"
    index = write_pack(
        path,
        selection.name,
        now(),
        [*runs.values()],
        [folder for folder in (*folders, selection.folder) if folder.is_dir()],
        Contents(weights=options.weights, text=has_text),
    )
    console = Console()
    if options.text and not has_text:
        console.say("It holds no text: these runs are of an archive without")
    if options.text and not selection.folder.is_dir():
        console.say(f"It holds no report: none was written yet; {program('report')} writes one")
    size = path.stat().st_size
    held = f"{how_many(len(index.runs), 'run')}, {how_many(len(index.files), 'file')}"
    console.say(f"{held}, {size / 1e6:.1f} MB, register {index.stamp}")
    if faults := faults_of(checked(selection), console):
        console.say(f"The store lacks what it should have ({how_many(len(faults), 'fault')} above), and so does this")
    console.say(f"Anyone can check it: ablab verify archive={shlex.quote(str(path))}")
    if index.stamp is not None:
        for line_to_type in _ways_to_stamp(path, index.stamp):
            console.say(line_to_type)
    console.say(f"Results: {path}")
    return DONE


def _ways_to_stamp(path: Path, stamp: str) -> Iterator[str]:
    """Write what is to be stamped beside the archive; yield how to have a stamp of the register that others hold."""
    line, request = write_stamp(path, stamp)
    answer = request.with_suffix(".tsr")
    yield "It is evidence only with a stamp that others hold. Each of these lines makes one:"
    title = shlex.quote(f"Results of {path.stem}")
    yield f"  git commit --allow-empty -m {title} -m '{TRAILER}: {stamp}' && git push"
    send = f"curl -H 'Content-Type: application/timestamp-query' --data-binary @{shlex.quote(str(request))}"
    yield f"  {send} {AUTHORITY} -o {shlex.quote(str(answer))}"
    yield f"  ots stamp {shlex.quote(str(line))}"
    packed = shlex.quote(str(path))
    yield f"To check it later: ablab verify archive={packed} stamp={stamp}, or stamp=<the .tsr or .ots>"


AUTHORITY = "https://freetsa.org/tsr"
"""A time authority that answers anyone; others take the same request."""
