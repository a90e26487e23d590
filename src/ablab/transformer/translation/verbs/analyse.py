"""The `analyse` command: inspect finished runs and store artefacts that a report compares.

With `schedule=true` and the words of a train line it needs no run, and draws the schedules of one.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ablab.config.groups import groups
from ablab.errors import UserError, choices
from ablab.store.artefacts import Artefact, MatrixArtefact, PictureArtefact, TableArtefact, comparable_artefacts
from ablab.store.finished import FinishedRun, open_runs
from ablab.store.locks import locked
from ablab.store.records import Record, Strict
from ablab.tasks.plan import PlannedRun, reopened
from ablab.tasks.verbs import say_json, split_words
from ablab.text import in_store, program
from ablab.tracking.console import Console
from ablab.transformer.config.training import TransformerConfig
from ablab.transformer.stages.asked import Asked, Wanted, missing
from ablab.transformer.stages.task import task_of_models
from ablab.transformer.translation.verbs.options import AnalyseOptions

SENTENCES = 200
"""Validation sentences for head importance, unless `sentences=` sets another number."""

OPEN = ("data", "trainer", "logger")
"""Groups of a run's configuration that can be set here: location of its text, device, and tracker."""


@dataclass(frozen=True)
class _Opened:
    """A finished run and the artefacts it requires."""

    planned: PlannedRun[Any]
    record: Record
    wanted: list[Wanted]


class Analysis(Strict):
    """An artefact of a run: its name, its title with the extreme values, and its file."""

    key: str
    summary: str
    file: str


class AnalysedRun(Strict):
    """A run and the artefacts that were asked for."""

    run: str
    name: str
    artefacts: list[Analysis]


class AnalysedRuns(Strict):
    """Analyses of runs."""

    runs: list[AnalysedRun]


def analyse(arguments: Sequence[str]) -> int:
    """Compute missing artefacts and print a line for each; with schedule=true, draw schedules without a run."""
    if any(map(asks_to_draw, arguments)):
        return draw_schedules([word for word in arguments if not asks_to_draw(word)])
    for word in arguments:
        if word.startswith("schedule=") and word.partition("=")[2] in groups()["schedule"]:
            raise UserError(f"{word}: a finished run keeps its schedule; allowed: with schedule=true, before a run")
    options, words = split_words(AnalyseOptions, arguments)
    for word in words:
        key, equals, _ = word.partition("=")
        if not equals or key.partition(".")[0] not in OPEN:
            raise UserError(f"{word}: no such key; {choices(key, [*AnalyseOptions.model_fields, *OPEN])}")
    if options.sentences is not None and not options.heads:
        raise UserError(f"sentences={options.sentences}: only masked heads need them; allowed: with heads=true")
    runs = open_runs(options.run, options.runs, Path(options.outputs), selected=True)
    opened = [_open(run, options, words) for run in runs]
    as_json = options.format == "json"
    console = Console(bars=all(one.planned.config.trainer.progress for one in opened), stderr=as_json)
    analysed = [_analyse(one, console) for one in opened]
    _say_what_is_next(opened, console)
    if as_json:
        say_json(AnalysedRuns(runs=analysed))
    return 0


def _open(run: FinishedRun, options: AnalyseOptions, words: Sequence[str]) -> _Opened:
    task = task_of_models(run)
    planned = reopened(run, words)
    items = (options.sentences or SENTENCES) if options.heads else None
    asked = Asked(options.attention, items, options.text)
    return _Opened(planned, run.record, task.analyses(planned, run.record, asked))


def _analyse(one: _Opened, console: Console) -> AnalysedRun:
    folder = one.planned.folder
    console.say(f"{folder.run_id}  {one.record.name}")
    if one.record.former:
        console.say(one.record.former)
    with locked(folder):
        lacking = missing(one.planned, one.wanted)
        if lacking:
            from ablab.transformer.stages.callbacks import callbacks_after_training

            with callbacks_after_training(one.planned, console) as callbacks:
                one.planned.task.add_artefacts(one.planned, one.record, lacking, callbacks)  # type: ignore[attr-defined]
        else:
            console.say("was analysed with these settings before: nothing is computed again")
    there = comparable_artefacts(folder.artefacts)
    found = []
    for each in one.wanted:
        summary = " ".join(_summary(there[each.key]).split())
        console.say(f"  {each.key:<19} {summary}")
        found.append(Analysis(key=each.key, summary=summary, file=str(folder.artefacts / f"{each.key}.json")))
    return AnalysedRun(run=folder.run_id, name=one.record.name, artefacts=found)


def _summary(artefact: Artefact) -> str:
    """Return its title, with the extreme values if it is a series or a single matrix."""
    if isinstance(artefact, TableArtefact | PictureArtefact):
        return artefact.title
    if isinstance(artefact, MatrixArtefact):
        if len(artefact.slices) > 1 or artefact.slices[0].cells:
            return artefact.title
        cells = [
            (value, f"{artefact.y.title} {row}, {artefact.x.title} {column}")
            for row, values in zip(artefact.y.labels, artefact.slices[0].values, strict=True)
            for column, value in zip(artefact.x.labels, values, strict=True)
        ]
    else:
        cells = [
            (y, f"{trace.label}, {name}")
            for trace in artefact.series
            for y, name in zip(trace.y, trace.names or [f"{artefact.x.title} {x:g}" for x in trace.x], strict=True)
        ]
    (low, lowest), (high, highest) = min(cells), max(cells)
    extremes = f"from {low:.4g} ({lowest}) to {high:.4g} ({highest})".replace("\n", ", ")
    return f"{artefact.title}: {extremes}"


def _say_what_is_next(opened: Sequence[_Opened], console: Console) -> None:
    folders = [one.planned.folder for one in opened]
    stores = {folder.outputs.resolve() for folder in folders}
    ids = [folder.run_id if len(stores) == 1 else str(folder.path) for folder in folders]
    elsewhere = len(stores) == 1 and stores != {Path("outputs").resolve()}
    store = in_store(folders[0].outputs) if elsewhere else ""
    console.say(f"Next: {program('report')} runs={','.join(ids)}{store}")
    console.say(f"Results: {', '.join(str(folder.artefacts) for folder in folders)}")


def asks_to_draw(word: str) -> bool:
    """Return whether a word is `schedule=true`. `schedule` is also a group of the configuration, with its options."""
    key, _, value = word.partition("=")
    try:
        return key == "schedule" and TypeAdapter(bool).validate_python(value)
    except ValidationError:
        return False


def draw_schedules(words: Sequence[str]) -> int:
    """Draw learning rate and DropHead rate of the run that the words describe, once, and say where."""
    for word in words:
        key = word.partition("=")[0]
        if key in AnalyseOptions.model_fields and key not in ("schedule", "outputs"):
            raise UserError(
                f"{word}: not with schedule=true, which draws a run before it is trained; allowed: the words of a "
                "train line"
            )
    from ablab.config import compose
    from ablab.transformer.stages.schedules import schedules, write

    composed = compose(words)
    console = Console()
    if not isinstance(composed.config, TransformerConfig):
        raise UserError(
            f"task={composed.config.task.kind}: no schedule to draw; allowed: a task that trains a Transformer"
        )
    drawn = schedules(composed.config)
    folder = Path(composed.config.outputs) / "schedules"
    table, picture = (folder / f"{drawn.name}.{kind}" for kind in ("csv", "png"))
    console.say_all((*drawn.titles, *drawn.notes))
    if table.exists() and picture.exists():
        console.say("these schedules were drawn before: nothing is drawn again")
    else:
        write(drawn, table, picture)
    console.say(f"Next: {program('train')} {shlex.join(words)}".rstrip())
    console.say(f"Results: {picture}, {table}")
    return 0
