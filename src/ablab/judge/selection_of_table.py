"""Select the runs of a table of results, with claims from a small experiment file beside it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ablab.errors import UserError, choices
from ablab.judge.metrics import Measure
from ablab.judge.other_tools import path_of, tool_runs
from ablab.judge.registered_claims import Registrations, fixed
from ablab.judge.results_table import SCORE, Results, results_of
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.judge.table_claims import JudgedTable, TableExperiment, read_claims
from ablab.judge.table_metrics import measure_of
from ablab.judge.table_rows import CORPUS, NO_ROWS, READERS, RunColumns, Sheet, read_sheet, sheet_of_frame
from ablab.judge.tool_runs import arm_words, having, results_of_runs
from ablab.store.run_folder import RunFolder
from ablab.study.claims import settled
from ablab.study.design import Arm, check_labels
from ablab.study.grid import grid_of
from ablab.tasks.registry import keys_of_curves
from ablab.tasks.task import FAILURES
from ablab.text import counted

UNVERIFIED = "origin not verified"
FRAME = "a data frame"
UNREGISTERED = "its claims were not registered"


def of_table(
    place: str, outputs: Path, file: Path | None = None, metric: str | None = None, better: str | None = None
) -> SelectedArms:
    """Select the runs of a table, or of another tool; `file` declares claims about them, or else one beside it.

    The file beside `results.csv` is `results.yaml`. `metric`: another one that is read, beside those that the file
    names; `better`: its direction, without a file. Nothing is known of how the runs were trained. Claims that were not
    registered are exploratory, and the report says so everywhere.
    """
    beside = beside_of(place)
    file = file or (beside if beside.is_file() else None)
    experiment = _undeclared(place, metric, better) if file is None else read_claims(file)
    if better is not None and file is not None:
        raise UserError(f"better={better}: {file} says what is better; allowed without a file of claims")
    results = results_in(place, experiment if metric is None else experiment.asking_too(metric))
    try:
        return selected(JudgedTable(place, results, experiment, outputs), file, metric)
    except UserError as error:
        raise UserError(f"{file or f'{beside}, which is not there yet'}: {error}") from None


def beside_of(place: str) -> Path:
    """Return where a file lies that declares claims about a table without being named: `results.yaml`."""
    path = path_of(place)
    if not path.name:
        return path
    # What follows a dot in the name of a folder is no ending.
    return path.with_name(f"{path.name}.yaml") if path.is_dir() else path.with_suffix(".yaml")


def _undeclared(place: str, metric: str | None, better: str | None) -> TableExperiment:
    """Return what is known of a table without a file. `better`: of its only metric, where none is named."""
    if better is None:
        return TableExperiment()
    if metric is None:
        metric, *others = results_in(place, TableExperiment()).metrics
        if others:
            raise UserError(f"better={better}: of which metric is not said; allowed: metric={metric}, or another one")
    return TableExperiment.model_validate({"metric": metric, "better": better})


def of_frame(frame: Any, experiment: TableExperiment, outputs: Path, file: Path | None = None) -> SelectedArms:
    """Select the runs of a data frame, or at a place, as those of a table. `file`: that declares the experiment."""
    place = str(frame) if isinstance(frame, str | Path) else None
    if place is None:
        _check_of_a_table(FRAME, experiment)
        results = _results_of_sheet(sheet_of_frame(frame), experiment)
    else:
        results = results_in(place, experiment)
    return selected(JudgedTable(place, results, experiment, outputs), file)


def results_in(place: str, experiment: TableExperiment) -> Results:
    """Return the results of a table, or of what another tool keeps at a place."""
    if (runs := tool_runs(place)) is not None:
        return results_of_runs(place, runs, experiment)
    sheet = read_sheet(Path(place))
    _check_of_a_table(sheet.name, experiment)
    return _results_of_sheet(sheet, experiment)


def rows_in(place: str, experiment: TableExperiment) -> int:
    """Return how many rows of results there are, or how many runs; 0 where there is no such file or folder yet."""
    path = path_of(place)
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return 0
    if (runs := tool_runs(place)) is not None:
        return len(having(runs, experiment.where))
    return len(read_sheet(Path(place)).rows)


def _check_of_a_table(name: str, experiment: TableExperiment) -> None:
    """Raise UserError for what only runs of another tool have."""
    for key in ("where", "at"):
        if key in experiment.model_fields_set:
            raise UserError(f"{key}: {name} is a table; allowed with runs of MLflow, TensorBoard and lm-eval")


STATES = {"finished", "crashed", "failed", "killed", "running", "preempted", "canceled", "cancelled"}
"""What trackers write of a run, as W&B does in the table that it exports."""


def _results_of_sheet(sheet: Sheet, experiment: TableExperiment) -> Results:
    """Return the results of a table of scores, or of one where each row is a run and its scores are in columns."""
    metrics = experiment.named_metrics
    arm, notes, seed = experiment.arm, list[str](), _seed_column(sheet, experiment)
    if not arm:
        if not metrics or SCORE & set(sheet.columns):
            return results_of(sheet)
        if sheet.columns:
            RunColumns([], seed, metrics).check(sheet)
        if not sheet.rows:
            raise UserError(f"{sheet.name}: {NO_ROWS}")
        words = sheet.words(metrics)
        named = len({one.get("arm") for one in words}) > 1 and seed != "arm"
        found, notes = arm_words(sheet.name, words, seed, ["arm"] if named else ())
        arm = list(found)
        for column in arm:
            if {str(row.values.get(column)).strip().lower() for row in sheet.rows} <= STATES:
                raise UserError(
                    f"{sheet.name}: {column} says which runs have finished, and tells no arms apart; allowed: the rows "
                    "of those that have, or arm= with the columns that do"
                )
        if not arm:
            others = [column for column in sheet.columns if column not in (seed, *metrics)]
            if not any(len({str(row.values.get(column)) for row in sheet.rows}) > 1 for column in others):
                raise UserError(f"{sheet.name}: has one arm; allowed: two and more, which a column tells apart")
            raise UserError(f"arm: missing, and no column tells arms apart for certain; {choices('', others)}")
    if not metrics:
        raise UserError("metric: missing; a table with a row for each run has scores in columns, of which one is named")
    try:
        results = results_of(RunColumns(arm, seed, metrics).by_score(sheet))
    except UserError as error:
        if experiment.arm:
            raise
        raise UserError(f"{error}; arms were told apart by {', '.join(arm)} alone: arm= names more columns") from None
    return replace(results, notes=[*results.notes, *notes])


def _written(arm: Arm) -> list[str]:
    """Return the levels of an arm as its name has them; its name where that is no list of levels."""
    return [f"{factor}={level}" for factor, level in arm.levels.items()] or [arm.name]


def _seed_column(sheet: Sheet, experiment: TableExperiment) -> str:
    """Return the column of seeds: as it is said, or the only one of that name, however it is written."""
    alike = [column for column in sheet.columns if column.strip().lower() == experiment.seed]
    is_said = "seed" in experiment.model_fields_set or experiment.seed in sheet.columns
    return experiment.seed if is_said or len(alike) != 1 else alike[0]


def selected(judged: JudgedTable, file: Path | None, typed: str | None = None) -> SelectedArms:
    """Select the runs of results under what is said of them. `file`: that says it, and may be registered.

    `typed`: a metric that is asked for besides.
    """
    results, experiment = judged.results, judged.experiment
    path = Path(judged.place or FRAME)
    metric = experiment.metric or _first(experiment, results, typed)
    _check_metrics((metric, *experiment.metrics), results)
    arms = [Arm(name, (), levels) for name, levels in _levels(list(results.runs)).items()]
    check_labels(experiment.labels, arms)
    baseline = grid_of(arms, arms[0].name, None).find(experiment.baseline or arms[0].name, "baseline")
    grid = grid_of(arms, baseline.name, experiment.within)
    claims = settled(experiment.claims, grid, metric)
    asked = {metric, *(claim.metric for claim in claims), *([typed] if typed is not None else [])}
    measures, unsaid = _measures(experiment, results, asked)
    of_arms = [ArmRuns(arm.name, _runs(path, arm, results, experiment)) for arm in arms]
    unknown = f"{UNVERIFIED}: the scores are those of {path.name}; nothing is known of how its runs were trained"
    registrations = Registrations.of(judged.store) if file is not None else None
    found = None if registrations is None or file is None else registrations.of_file(file, judged)
    if registrations is None or found is None:
        lost = [] if registrations is None else registrations.flaws
        flaws, notes, what = [*lost, f"{unknown}; {UNREGISTERED}" if claims else unknown], [], None
    else:
        what = fixed(found, registrations.known, judged, claims, grid)
        flaws, notes, claims = [*registrations.flaws], [*what.notes, unknown], [*what.claims]
    for claim in claims:
        if claim.metric not in (*measures, FAILURES):
            raise UserError(f"claims.metric={claim.metric}: {choices(claim.metric, (*measures, FAILURES))}")
    return SelectedArms(
        # Claims have a report of their own, that a look at the table alone does not replace; so has another folder.
        name="-".join(dict.fromkeys(("table", *_named(path), *([] if file is None else [file.stem])))),
        question=experiment.question,
        source=experiment.source,
        arms=of_arms,
        baseline=baseline.name,
        metric=metric,
        claims=claims,
        registered=None if what is None else what.registered,
        outputs=judged.store,
        departed=None if what is None else what.departed,
        notes=[*notes, *results.notes, *unsaid, *_left_out(results, experiment)],
        error=experiment.error,
        within=experiment.within,
        baselines=grid.baselines,
        awaited=list(_awaited(of_arms, results, experiment)),
        declared=experiment.metric,
        # Of runs made elsewhere, `norm=pre` need not be what an option of that name is here.
        labels={name: name for arm in arms for name in _written(arm)} | experiment.labels,
        measures=measures,
        origin=UNVERIFIED,
        flaws=flaws,
        stamp=None if what is None or registrations is None else registrations.stamp,
    )


def _first(experiment: TableExperiment, results: Results, typed: str | None) -> str:
    """Return the first metric of a table; the typed one where nobody has said what is better of the first."""
    first = results.metrics[0]
    is_said = first in _measures(experiment, results, ())[0]
    return first if is_said or typed is None or typed not in results.metrics else typed


def _named(table: Path) -> Iterator[str]:
    """Yield the names of a table and of what tells it from others: its folder, and an ending that is not usual."""
    folder = table.resolve().parent
    if folder != Path.cwd():
        yield folder.name
    yield table.stem
    if table.suffix in READERS and table.suffix != ".csv":
        yield table.suffix[1:]


def _measures(
    experiment: TableExperiment, results: Results, asked: Collection[str]
) -> tuple[dict[str, Measure], list[str]]:
    """Return the measures of a table, and why others are left out: of those that nobody asks about."""
    found, unsaid = dict[str, Measure](), []
    for name in results.metrics:
        try:
            found[name] = measure_of(name, experiment.declared.get(name), results)
        except UserError as reason:
            if name in asked or name in experiment.declared:
                raise
            unsaid.append(f"{name} is left out: {reason}")
    return found, unsaid


def _check_metrics(asked: Sequence[str], results: Results) -> None:
    """Raise UserError for a metric that the table lacks, and for one that cannot be told from the share of failures."""
    if FAILURES in results.metrics:
        raise UserError(
            f"metric {FAILURES}: that is the share of runs that diverge; allowed: another name in the table"
        )
    for name in asked:
        if name in keys_of_curves():
            raise UserError(f"metric {name}: that is read from the curves of runs; allowed: another name in the table")
    for name in asked:
        if name not in results.metrics:
            raise UserError(f"metric={name}: the table has none; {choices(name, results.metrics)}")


def _awaited(arms: Sequence[ArmRuns], results: Results, experiment: TableExperiment) -> Iterator[ArmRun]:
    """Yield the runs that the file names and the table lacks, and those that a tool began and that did not finish.

    Of a run that failed nobody knows what it would have come to: those that are left may be the ones that went well.
    """
    for arm in arms:
        for run in arm.runs:
            if not run.has_ended and (experiment.seeds or (arm.name, run.seed) in results.unfinished):
                yield run


def _left_out(results: Results, experiment: TableExperiment) -> Iterator[str]:
    """Yield a note on seeds of the table that the file of claims does not name."""
    there = {seed for runs in results.runs.values() for seed in runs}
    if more := sorted(there - set(experiment.seeds or there)):
        yield f"seeds that the file of claims does not name are left out: {counted(more)}"


def _levels(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the levels in names such as `norm=pre,layerdrop=0.2`; none where not all arms have the same factors."""
    parsed = {name: dict(word.split("=", 1) for word in name.split(",") if "=" in word) for name in names}
    factors = {tuple(levels) for levels in parsed.values()}
    whole = all(len(levels) == len(name.split(",")) for name, levels in parsed.items())
    return parsed if whole and len(factors) == 1 else {name: {} for name in names}


def _runs(path: Path, arm: Arm, results: Results, experiment: TableExperiment) -> list[ArmRun]:
    """Return the runs of an arm, those that are to come too.

    Their folders do not exist, and of their recipes a table has the data at most.
    """
    corpus = results.corpora.get(arm.name)
    recipe = {} if corpus is None else {CORPUS: corpus}
    there, seeds = results.runs[arm.name], experiment.seeds
    return [
        ArmRun(
            folder=RunFolder(path / arm.name / f"seed {seed}"),
            seed=seed,
            state=_state(arm.name, seed, results),
            record=None,
            evaluation=None,
            curve=None,
            recipe=recipe,
            given=there.get(seed),
        )
        for seed in sorted(there if seeds is None else seeds)
    ]


def _state(arm: str, seed: int, results: Results) -> str:
    if seed not in results.runs[arm]:
        return "missing"
    if results.runs[arm][seed] is not None:
        return "finished"
    return results.unfinished.get((arm, seed), "diverged")
