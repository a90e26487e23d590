"""The `report` command: results of a study, or of any selection of runs, as a page, tables and data."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ablab.code.machine import uncollected
from ablab.commands.options import ReportOptions
from ablab.commands.verification import all_hold, ended_of, faults_of, verify_runs
from ablab.config.grammar import store_words
from ablab.config.overrides import UnknownKeyError
from ablab.errors import DONE, FAILED, UserError, choices, is_installed
from ablab.files import json_digest, read_json, write_json, write_text
from ablab.files.disk import halves_of, keep_names, remove_abandoned
from ablab.judge.document import Document
from ablab.judge.flaws import checked
from ablab.judge.selection import SelectedArms
from ablab.judge.selection_ad_hoc import of_runs, where
from ablab.judge.selection_of_kept import of_kept
from ablab.judge.selection_of_study import check_begun, of_study
from ablab.judge.selection_of_table import of_table
from ablab.report.charts import charts
from ablab.report.checklist import checklist
from ablab.report.claim_words import answers, exploratory_words
from ablab.report.latex import column_files, latex
from ablab.report.names import named
from ablab.report.page import page
from ablab.report.pictures import DRAWS, drawn, write_column_picture, write_pictures
from ablab.report.plain_words import plain_words
from ablab.report.sentences import document_of
from ablab.report.tables import TABLES, tables
from ablab.report.text import comma_separated, markdown
from ablab.study.definition import define
from ablab.study.study import Study, label_of
from ablab.sweep.summary import open_study_tracker
from ablab.tasks.own_metrics import check_metric
from ablab.tasks.plan import check_writable
from ablab.tasks.registry import task_named
from ablab.tasks.verbs import say_json, split_words
from ablab.text import aligned, how_many
from ablab.tracking.console import Console
from ablab.tracking.open import Guarded

TOLD = "reported.json"
"""The file of a study that says which report its trackers were told, by the kind of tracker."""


def track_news(data: Mapping[str, Any], document: Document, study: Study, say: Callable[[str], None]) -> None:
    """Log a report unless the study's tracker was told the same before. data: of report.json."""
    path, kind = study.folder / TOLD, study.cells[0].planned.config.logger.kind
    told, digest = _told(path), json_digest(_content(data), 11)
    if told.get(kind) != digest and track_report(document, study, say):
        write_json(path, {**told, kind: digest})


def track_report(document: Document, study: Study, say: Callable[[str], None]) -> bool:
    """Log the report to the study's tracker under `report/`; verdicts and notes also go to the summary, which lists of
    runs show. Return whether a tracker was told all of it.
    """
    moment = int(time.time())  # after the comparison logged at the end of the study
    with open_study_tracker(study, say) as tracker:
        if not isinstance(tracker, Guarded):  # nobody listens
            return False
        for table in tables(document):
            tracker.table(moment, f"report/{table.key}", table.columns, table.rows)
        for key, chart in charts(document).items():
            tracker.chart(moment, f"report/{key}", chart)
        verdicts = (claim.words + exploratory_words(claim) for claim in document.claims)
        told = {f"report/verdicts/{number}": words for number, words in enumerate(verdicts, 1)}
        tracker.summary({**told, "report/notes": "; ".join(document.notes)})
        return not tracker.has_ended


@uncollected()
def report(arguments: Sequence[str]) -> int:
    """Compute the report, write it, and print where it is."""
    options, words = split_words(ReportOptions, arguments)
    if any(word.startswith("hydra") for word in words):  # of the line that trained, which chose its launcher
        from ablab.sweep.hydra import hydra_words

        of_hydra = hydra_words(words)
        words = [word for word in words if word not in of_hydra]
    if options.claims is not None and options.table is None:
        raise UserError(f"claims={options.claims}: of which table is not said; allowed: with table=")
    if options.better is not None and options.table is None:
        raise UserError(f"better={options.better}: runs of a store say what is better; allowed: with table=")
    study = chosen = None
    if options.runs is None and options.where is None and options.table is None:
        chosen = of_kept(words, Path(options.outputs)) if words else None
        if chosen is None:
            study = _study([*words, *store_words(options.outputs)] if words else [])
    chosen = chosen or (_ad_hoc(options, words) if study is None else of_study(study))
    return report_on(_asked_for(chosen, options), options, study)


def report_on(selection: SelectedArms, options: ReportOptions, study: Study | None = None) -> int:
    """Write the report of a selection, and print where it is. `study`: the one whose tracker is told of it."""
    if selection.origin is None:
        check_begun(selection)
        selection = checked(selection)
    console = Console(stderr=options.format == "json")
    check_writable(selection.outputs)
    if options.verify and not _holds(selection, console):
        console.say("No report was written, since what it would rest on does not hold.")
        return FAILED
    with console.counting("comparing arms", len(selection.rows)) as advance:
        document = document_of(selection, options.resamples, lambda: advance(1))
    read = named(document)
    data = document.model_dump()
    _write(data, read, selection.folder)
    if study is not None and _has_a_run_of_its_own(study, selection):
        track_news(data, read, study, console.say)
    if options.format == "json":
        say_json(document)
    else:
        _say(read, selection.folder, console)
    return DONE


def _holds(selection: SelectedArms, console: Console) -> bool:
    faults = faults_of(selection, console)
    return all_hold(verify_runs(ended_of(selection), console)) and not faults


def _has_a_run_of_its_own(study: Study, selection: SelectedArms) -> bool:
    """Return whether W&B has a run for this report: only a launched study does, and only for its declared report."""
    return study.folder.exists() and selection.name == study.name


def _study(words: Sequence[str]) -> Study:
    if not words:
        raise UserError(
            "report: say experiment=<name>, the words of a sweep, runs=<id>,<id>, where='model=tiny' or table=<file>"
        )
    try:
        return define(tuple(words))
    except UnknownKeyError as unknown:
        near = get_close_matches(unknown.key, ReportOptions.model_fields, n=1)
        if not near:
            raise
        raise UserError(f"{unknown.key}: no such key; did you mean {near[0]}?") from None


def _ad_hoc(options: ReportOptions, words: Sequence[str]) -> SelectedArms:
    if words:
        allowed = ", ".join(ReportOptions.model_fields)
        raise UserError(f"{words[0]}: with runs=, where= and table= allowed: {allowed}")
    store = Path(options.outputs)
    given = [key for key in ("runs", "where", "table") if getattr(options, key) is not None]
    if len(given) > 1:
        raise UserError(f"{given[1]}=: not together with {given[0]}=; say one of them")
    if options.table is not None:
        if options.verify:
            raise UserError("verify=true: a table has no translations; allowed with runs of a store")
        claims = None if options.claims is None else Path(options.claims)
        return of_table(options.table, store, claims, options.metric, options.better)
    chosen = of_runs(options.runs, store) if options.runs is not None else where(options.where or "", store)
    for arm in chosen.arms:  # copies, and runs that were set aside and made again, are no seeds of their own
        for seed, count in Counter(run.seed for run in arm.runs).items():
            if count > 1:
                raise UserError(
                    f"{chosen.question}: {count} runs are seed {seed} of one recipe; allowed: one of them (ablab diff "
                    "compares two)"
                )
    records = [run.record for run in ended_of(chosen) if run.record is not None]
    if len({task_named(record.task).name for record in records}) > 1:
        named = dict.fromkeys(f"task={record.choices.get('task', record.task)}" for record in records)
        raise UserError(f"{chosen.question}: these are runs of {' and '.join(named)}; allowed: runs of one task")
    return chosen


def _asked_for(selection: SelectedArms, options: ReportOptions) -> SelectedArms:
    """Apply a typed baseline or metric; the result is a report beside the declared one, without its claims."""
    if options.metric is not None:
        check_metric(options.metric)
    labelled = {label_of(arm.name, selection.labels): arm.name for arm in selection.arms}
    wanted = options.baseline or selection.baseline
    asked = selection.arm(labelled.get(wanted, wanted))
    if asked is None:
        names = [arm.name for arm in selection.arms]
        raise UserError(f"baseline={options.baseline}: no such arm; {choices(options.baseline, names)}")
    if options.metric is not None and options.metric not in selection.measures:
        lacks = "the table has none; " if selection.origin is not None else ""
        raise UserError(f"metric={options.metric}: {lacks}{choices(options.metric, selection.measures)}")
    metric, baseline = options.metric or selection.metric, asked.name
    news = [f"in-{metric}"] * (metric != selection.metric) + [f"against-{baseline}"] * (baseline != selection.baseline)
    if not news:
        return selection
    note = f"not judged here, but in the report {selection.name}: {how_many(len(selection.claims), 'claim')}"
    notes = (*selection.notes, note) if selection.claims else selection.notes
    name = "-".join((selection.name, *news))
    changed = replace(selection, name=name, metric=metric, baseline=baseline, claims=[], notes=notes)
    return changed if baseline == selection.baseline else replace(changed, within=None, baselines={})


def _write(data: dict[str, Any], document: Document, folder: Path) -> None:
    """Write all files, or none if one fails.

    data: of report.json, under the names of the study; document: under those for people, as every other file has it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(halves_of(folder), time.time())
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as place:
        made = Path(place)
        write_json(made / "report.json", data)
        write_pictures(document, made)
        write_column_picture(document, made)
        write_text(made / "report.html", page(document))
        write_text(made / "report.md", markdown(document))
        write_text(made / "report.tex", latex(document))
        write_text(made / "checklist.md", checklist(document))
        for name, text in column_files(document).items():
            write_text(made / name, text)
        for table in tables(document):
            write_text(made / f"{table.key}.csv", comma_separated(document, table))
        folder.mkdir(exist_ok=True)
        names = {path.name for path in made.iterdir()}
        for path in [*drawn(folder), folder / "column_figure.tex", *(folder / f"{key}.csv" for key in TABLES)]:
            if path.name not in names:
                path.unlink(missing_ok=True)  # left by an earlier report, which this one replaces
        for name in names:
            (made / name).replace(folder / name)
        keep_names(folder)


def _content(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report without its time and stamp: other runs of the store move them and are no news of this one."""
    return {key: value for key, value in data.items() if key not in ("made", "stamp")}


def _told(path: Path) -> dict[str, Any]:
    """Return what trackers were told, by their kinds; nothing where that is damaged."""
    try:
        return dict(read_json(path))
    except (OSError, UserError, TypeError, ValueError):
        return {}


def _say(document: Document, folder: Path, console: Console) -> None:
    if document.question:
        console.say(document.question)
        console.say("")
    for note in document.notes:
        console.say(f"Note: {note}")
    if document.claims:
        console.say(answers(document.claims))
    for claim in document.claims:
        console.say(plain_words(claim, document.metric))
        is_told = claim.exploratory is not None and any(claim.exploratory in note for note in document.notes)
        console.say(f"  {claim.judged}{'' if is_told else exploratory_words(claim)}")
    if document.claims or document.notes:
        console.say("")
    shown = {table.key: table for table in tables(document)}
    if (arms := shown.get("arms")) is not None:
        width = 1 + arms.columns.index("seeds")
        console.say_all(aligned([arms.columns[:width], *(row[:width] for row in arms.rows)], left=1))
    console.say("")
    if not document.claims and (differences := shown.get("differences")) is not None:
        console.say(f"{differences.title}, uncorrected (verdicts need claims, in an experiment file):")
        console.say_all(aligned([differences.columns, *differences.rows], left=1))
        console.say("")
    if document.stamp is not None:
        console.say(f"Stamp: register {document.stamp}")
    if not is_installed(DRAWS):
        console.say(f"No pictures beside the page: {DRAWS} is not installed; pip install 'ablab[train]' brings it")
    console.say(
        f"Results: {folder / 'report.html'}, and beside it report.md, report.json and *.csv; for a paper report.tex, "
        "column_*.tex and checklist.md"
    )
