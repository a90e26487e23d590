"""Select the runs of a table of results, with claims from a small experiment file beside it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from ablab.errors import UserError, choices
from ablab.judge.results_table import CORPUS, WITHIN, Results, results_of
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.judge.table_metrics import TableMetric, measure_of
from ablab.judge.table_rows import RunColumns, Sheet, read_sheet, sheet_of_frame
from ablab.store.run_folder import RunFolder
from ablab.study.claims import settled
from ablab.study.design import Arm
from ablab.study.experiment import Declared, ErrorEstimate, Expectation, read_as
from ablab.study.grid import grid_of
from ablab.tasks.task import FAILURES

UNVERIFIED = "origin not verified"


class TableClaim(Expectation):
    """A claim about any metric of the table."""

    metric: str | None = None


class TableExperiment(Declared):
    """The file beside a table: what an experiment file says of runs that others trained.

    `arm`, `seed`: of a table with a row for each run, the columns that name its arm and seed; its scores are then the
    columns of `metric`, of `metrics` and of the claims.
    """

    question: str = ""
    source: str | None = None
    arm: list[str] = Field(default_factory=list)
    seed: str = "seed"
    baseline: str | None = None
    within: str | None = None
    metric: str | None = None
    metrics: dict[str, TableMetric] = Field(default_factory=dict)
    claims: list[TableClaim] = Field(default_factory=list)
    error: ErrorEstimate = "moderated"


def of_table(path: Path, outputs: Path) -> SelectedArms:
    """Select the runs of a table; `results.yaml` beside `results.csv` may declare claims about them.

    Nothing is known of how they were trained: their claims are exploratory, and the report says so everywhere.
    """
    beside = path.with_suffix(".yaml")
    experiment = read_as(TableExperiment, beside) if beside.exists() else TableExperiment()
    results = results_of(_by_score(read_sheet(path), experiment))
    try:
        return selected(path, results, experiment, outputs)
    except UserError as error:
        raise UserError(f"{beside}: {error}") from None


def of_frame(frame: Any, experiment: TableExperiment) -> SelectedArms:
    """Select the runs of a data frame, as those of a table."""
    results = results_of(_by_score(sheet_of_frame(frame), experiment))
    return selected(Path("a data frame"), results, experiment, Path("outputs"))


def _by_score(sheet: Sheet, experiment: TableExperiment) -> Sheet:
    """Return a table of scores: the one that there is, or where each row is of a run, that of its scores."""
    if not experiment.arm:
        return sheet
    asked = (experiment.metric, *experiment.metrics, *(claim.metric for claim in experiment.claims))
    metrics = dict.fromkeys(name for name in asked if name is not None and name != FAILURES)
    if not metrics:
        raise UserError("metric: missing; a table with a row for each run has scores in columns, of which one is named")
    return RunColumns(experiment.arm, experiment.seed, list(metrics)).by_score(sheet)


def selected(path: Path, results: Results, experiment: TableExperiment, outputs: Path) -> SelectedArms:
    """Select the runs of results under what is said of them; `path`: of the table, or what stands for it."""
    metric = experiment.metric or results.metrics[0]
    for name in (metric, *experiment.metrics):
        if name not in results.metrics:
            raise UserError(f"metric={name}: the table has none; {choices(name, results.metrics)}")
    arms = [Arm(name, (), levels) for name, levels in _levels(list(results.runs)).items()]
    baseline = grid_of(arms, arms[0].name, None).find(experiment.baseline or arms[0].name, "baseline")
    grid = grid_of(arms, baseline.name, experiment.within)
    claims = settled(experiment.claims, grid, metric)
    measures = {name: measure_of(name, experiment.metrics.get(name), results) for name in results.metrics}
    for claim in claims:
        if claim.metric not in (*measures, FAILURES):
            raise UserError(f"claims.metric={claim.metric}: {choices(claim.metric, (*measures, FAILURES))}")
    return SelectedArms(
        name=f"table-{path.stem}",
        question=experiment.question,
        source=experiment.source,
        arms=[ArmRuns(arm.name, _runs(path, arm, results, experiment.within)) for arm in arms],
        baseline=baseline.name,
        metric=metric,
        claims=claims,
        registered=None,
        outputs=outputs,
        error=experiment.error,
        within=experiment.within,
        baselines=grid.baselines,
        declared=experiment.metric,
        measures=measures,
        origin=UNVERIFIED,
        flaws=[f"{UNVERIFIED}: the scores are those of {path.name}; nothing is known of how its runs were trained"],
    )


def _levels(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the levels in names such as `norm=pre,layerdrop=0.2`; none where not all arms have the same factors."""
    parsed = {name: dict(word.split("=", 1) for word in name.split(",") if "=" in word) for name in names}
    factors = {tuple(levels) for levels in parsed.values()}
    whole = all(len(levels) == len(name.split(",")) for name, levels in parsed.items())
    return parsed if whole and len(factors) == 1 else {name: {} for name in names}


def _runs(path: Path, arm: Arm, results: Results, within: str | None) -> list[ArmRun]:
    """Return the runs of an arm. Their folders do not exist, and of their recipes a table has the data at most."""
    data = {CORPUS: results.corpora.get(arm.name), WITHIN: arm.levels.get(within or "")}
    recipe = {key: value for key, value in data.items() if value is not None}
    return [
        ArmRun(
            folder=RunFolder(path / arm.name / f"seed {seed}"),
            seed=seed,
            state="diverged" if given is None else "finished",
            record=None,
            evaluation=None,
            curve=None,
            recipe=recipe,
            given=given,
        )
        for seed, given in sorted(results.runs[arm.name].items())
    ]
