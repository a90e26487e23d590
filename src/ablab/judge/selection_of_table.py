"""Select the runs of a table of results, with claims from a small experiment file beside it."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from ablab.errors import UserError, choices
from ablab.judge.metrics import Items, Measure
from ablab.judge.results_table import Results, read_results
from ablab.judge.runs import ArmRun, ArmRuns, Given
from ablab.judge.selection import SelectedArms
from ablab.statistics.paired import vary
from ablab.statistics.products import AnyFloat
from ablab.statistics.student import Floats
from ablab.store.run_folder import RunFolder
from ablab.study.claims import settled
from ablab.study.design import Arm
from ablab.study.experiment import Declared, ErrorEstimate, Expectation, read_as
from ablab.study.grid import grid_of
from ablab.tasks.registry import known_scores
from ablab.tasks.score import COSTS
from ablab.tasks.task import FAILURES

UNVERIFIED = "origin not verified"


class TableClaim(Expectation):
    """A claim about any metric of the table."""

    metric: str | None = None


class TableMetric(Declared):
    """What the report has to know of a metric that ablab does not. `digits`: after the decimal point; by its noise."""

    title: str | None = None
    unit: str = ""
    digits: Annotated[int, Field(ge=0, le=9)] | None = None
    lower_is_better: bool = False


class TableExperiment(Declared):
    """The file beside a table: what an experiment file says of runs that others trained."""

    question: str = ""
    source: str | None = None
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
    results = read_results(path)
    beside = path.with_suffix(".yaml")
    experiment = read_as(TableExperiment, beside) if beside.exists() else TableExperiment()
    try:
        return _selected(path, results, experiment, outputs)
    except UserError as error:
        raise UserError(f"{beside}: {error}") from None


def _selected(path: Path, results: Results, experiment: TableExperiment, outputs: Path) -> SelectedArms:
    metric = experiment.metric or results.metrics[0]
    for name in (metric, *experiment.metrics):
        if name not in results.metrics:
            raise UserError(f"metric={name}: the table has none; {choices(name, results.metrics)}")
    arms = [Arm(name, (), levels) for name, levels in _levels(list(results.runs)).items()]
    baseline = grid_of(arms, arms[0].name, None).find(experiment.baseline or arms[0].name, "baseline")
    grid = grid_of(arms, baseline.name, experiment.within)
    claims = settled(experiment.claims, grid, metric)
    measures = {name: _measure(name, experiment.metrics.get(name), results) for name in results.metrics}
    for claim in claims:
        if claim.metric not in (*measures, FAILURES):
            raise UserError(f"claims.metric={claim.metric}: {choices(claim.metric, (*measures, FAILURES))}")
    return SelectedArms(
        name=f"table-{path.stem}",
        question=experiment.question,
        source=experiment.source,
        arms=[ArmRuns(arm, _runs(path, arm, runs)) for arm, runs in results.runs.items()],
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


def _measure(name: str, declared: TableMetric | None, results: Results) -> Measure:
    about = _about(name, declared or TableMetric())

    def score(run: ArmRun) -> float | None:
        return None if run.given is None else run.given.scores.get(name)

    def items(run: ArmRun) -> Floats | None:
        values = None if run.given is None else run.given.items.get(name)
        return None if values is None else np.stack([values, np.ones_like(values)], axis=1)

    has_items = any(given and name in given.items for runs in results.runs.values() for given in runs.values())
    return Measure(
        about.title or name,
        about.unit,
        _digits(name, results) if about.digits is None else about.digits,
        not about.lower_is_better,
        None,
        score,
        of_machine=name in known_scores() and known_scores()[name].place in COSTS,
        items=Items(items, _mean_of_sums) if has_items else None,
    )


def _about(name: str, declared: TableMetric) -> TableMetric:
    """Return what is declared of a metric, and for the rest what ablab knows of it."""
    if (known := known_scores().get(name)) is None:
        return declared
    own = {field: getattr(declared, field) for field in declared.model_fields_set}
    told = {"title": known.title, "unit": known.unit, "digits": known.digits}
    return TableMetric.model_validate({**told, "lower_is_better": not known.higher_is_better, **own})


def _digits(name: str, results: Results) -> int:
    """Return the digits after the point that show the noise within arms to two places."""
    arms = [
        [given.scores[name] for given in runs.values() if given and name in given.scores]
        for runs in results.runs.values()
    ]
    sds = [float(np.std(scores, ddof=1)) for scores in arms if len(scores) > 1 and vary(np.array(scores))]
    sd = float(np.median(sds)) if sds else 0.0
    return min(9, max(0, 1 - math.floor(math.log10(sd)))) if sd > 0 else 2


def _mean_of_sums(sums: npt.NDArray[AnyFloat]) -> Floats:
    """Return the mean over items from the sums of their values and of their numbers, [..., 2]."""
    mean: Floats = np.asarray(sums[..., 0] / sums[..., 1], dtype=np.float64)
    return mean


def _runs(path: Path, arm: str, runs: Mapping[int, Given | None]) -> list[ArmRun]:
    """Return the runs of an arm. Their folders do not exist: a table has none."""
    return [
        ArmRun(
            folder=RunFolder(path / arm / f"seed {seed}"),
            seed=seed,
            state="diverged" if given is None else "finished",
            record=None,
            evaluation=None,
            curve=None,
            recipe={},
            given=given,
        )
        for seed, given in sorted(runs.items())
    ]
