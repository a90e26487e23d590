"""Lines of the report per arm: scores, on each test set too, cost, missing runs, and notes to read first."""

import os
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import inf
from pathlib import Path

import numpy as np

from ablab.fields import SCHEMA
from ablab.judge.document import SetLine
from ablab.judge.estimates import LEVEL
from ablab.judge.evidence import EVEN, convergence, off_scale
from ablab.judge.lines import ArmLine, RunLine, Span
from ablab.judge.metrics import Measure
from ablab.judge.origins import codes_of, odd, unlike, versions_of, versions_of_unnamed
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.diverged import share_interval
from ablab.statistics.interval import Interval, NotTestable
from ablab.statistics.paired import t_interval
from ablab.store.records import EvaluatedSet, Evaluation
from ablab.tasks.identity import differing
from ablab.tasks.score import Score
from ablab.text import have, how_many


def _within(interval: Interval, bounds: tuple[float, float] | None) -> Span:
    """Return an interval of the mean, cut where the score cannot be."""
    low, high = bounds or (-inf, inf)
    return Span.of(replace(interval, low=max(interval.low, low), high=min(interval.high, high)))


def arm_line(selection: SelectedArms, arm: ArmRuns, place: Path) -> ArmLine:
    """Return everything the report shows of one arm. Run folders are given relative to `place`."""
    baseline, measure, beside = selection.baseline_of(arm), selection.measure, selection.beside
    task = selection.task
    bounds = None if selection.origin is not None else task.bounds.get(selection.metric)
    values = [value for run in arm.finished if (value := measure.value(run)) is not None]
    # An arm with diverged runs shows their share, not a mean of the survivors.
    averaged = np.array([] if arm.diverged else values)
    states = Counter(run.state for run in arm.runs)
    costs = [run.record.cost for run in arm.runs if run.record is not None]
    return ArmLine(
        name=arm.name,
        is_baseline=arm is baseline,
        planned=len(arm.runs),
        finished=len(arm.finished),
        scored=None if len(values) == len(arm.finished) else len(values),
        diverged=len(arm.diverged),
        missing={state: number for state, number in states.items() if state not in ("finished", "diverged")},
        mean=float(averaged.mean()) if averaged.size else None,
        sd=float(averaged.std(ddof=1)) if averaged.size > 1 else None,
        interval=_within(t_interval(averaged, LEVEL), bounds) if averaged.size > 1 else None,
        minimum=float(averaged.min()) if averaged.size else None,
        maximum=float(averaged.max()) if averaged.size else None,
        scores={name: _mean_of(arm, other) for name, other in beside.items()},
        failed_share=Span.of(share_interval(len(arm.diverged), len(arm.runs))) if arm.diverged else None,
        parameters=costs[0].parameters or None if costs else None,
        steps=mean([cost.steps for cost in costs]),
        tokens=mean([cost.tokens for cost in costs]) or None,
        train_seconds=median([cost.train_seconds for cost in costs]),
        tokens_per_second=median([cost.tokens_per_second for cost in costs]) or None,
        decoding_speed=median([run.evaluation.sentences_per_second for run in arm.finished if run.evaluation]) or None,
        convergence=_convergence(arm, measure.progress or task.converging(task.scores[task.primary])),
        differs=differing(*(dict(one.runs[0].recipe) if one.runs else {} for one in (baseline, arm))),
        notes=_arm_notes(selection, arm, baseline),
        runs=[_run(selection, run, place) for run in arm.runs],
    )


def _mean_of(arm: ArmRuns, measure: Measure) -> float | None:
    """Return the mean over the finished seeds; None where one of them has no value, or where runs diverged."""
    values = [measure.value(run) for run in arm.finished]
    whole = [value for value in values if value is not None]
    return None if arm.diverged or len(whole) < len(values) else mean(whole)


def _run(selection: SelectedArms, run: ArmRun, place: Path) -> RunLine:
    record, measure = run.record, selection.measure
    loss = selection.task.scores[selection.task.loss].key
    reason = record.reason if record is not None and run.state == "diverged" else None
    return RunLine(
        run_id=run.folder.run_id,
        seed=run.seed,
        state=run.state,
        score=measure.value(run) if run.has_finished else None,
        loss=None if run.selected is None else run.selected.scores.get(loss),
        folder=os.path.relpath(run.folder.path, place),
        commit=None if record is None else record.provenance.get("commit"),
        code=None if record is None else record.provenance.get("code"),
        signature=None if run.evaluation is None else next(iter(run.evaluation.signatures.values()), None),
        device=None if record is None else record.runtime.get("device"),
        threads=None if record is None else record.runtime.get("threads"),
        note="; ".join(note for note in (reason, odd(run)) if note),
    )


def _convergence(arm: ArmRuns, progress: Score | None) -> str:
    if progress is None:
        return "not asked"
    if not arm.finished:
        return "unknown: no finished run"
    try:
        return convergence(arm, progress, progress.enough).state
    except NotTestable as reason:
        return f"unknown: {reason}"


def _arm_notes(selection: SelectedArms, arm: ArmRuns, baseline: ArmRuns) -> list[str]:
    """Return notes to read before comparing the arm: missing runs, differing budgets, hardware and code."""
    notes, measure = [], selection.measure
    if arm.diverged:
        notes.append(f"{len(arm.diverged)} of {len(arm.runs)} runs diverged")
    values = [measure.value(run) for run in arm.finished]
    if None in values:
        notes.append(f"{(lack := values.count(None))} of {len(values)} runs {have(lack)} no {measure.title}")
    if len(arm.finished) == 1 and not arm.diverged:
        notes.append("one seed, no interval")
    for what, read in (("steps", _steps), ("batch of tokens", _batch)):
        ours, theirs = read(arm), read(baseline)
        if ours and theirs and ours != theirs:
            notes.append(f"other budget: {what} {_listed(ours)}, baseline {_listed(theirs)}")
    if (loss := selection.loss) is not None and (reason := off_scale((baseline, arm), loss)) is not None:
        notes.append(reason)
    if any(run.record.time_limited for run in arm.runs if run.record):
        notes.append("training ended by the clock")
    speeds = [run.record.cost.tokens_per_second for run in arm.finished if run.record]
    if speeds and min(speeds) > 0 and max(speeds) > EVEN * min(speeds):
        speed = f"{min(speeds):,.0f} to {max(speeds):,.0f} {selection.task.nouns.tokens}/s in training"
        notes.append(f"{speed}: the machine was busy")
    if mixed := [run.record.mixed for run in arm.runs if run.record and run.record.mixed is not None]:
        changed = ", ".join(dict.fromkeys(mixed))
        notes.append(f"{len(mixed)} of {len(arm.runs)} runs mixed: {changed} changed during training")
    if arm is not baseline and (other := unlike(arm, baseline)) is not None:
        notes.append(f"not made like the baseline: {other}")
    settings = {(run.record.runtime.get("device"), run.record.runtime.get("threads")) for run in arm.runs if run.record}
    if len(settings) > 1:
        found = sorted(f"{on}, {how_many(n, 'thread')}" if n else str(on) for on, n in settings)
        notes.append(f"trained on {' and '.join(found)}")
    if any(run.record.schema_version != SCHEMA for run in arm.runs if run.record):
        notes.append("trained under an older SCHEMA: the same settings give other numbers today")
    code = versions_of([codes_of(run.record)[-1] for run in arm.runs if run.record])
    if code > 1:
        notes.append(f"from {code} versions of the code")
    edited = versions_of_unnamed(run.record for run in arm.runs if run.record)
    notes += [f"from {count} versions of {path}, which is no input" for path, count in edited.items()]
    return notes


def _steps(arm: ArmRuns) -> set[object]:
    return {run.record.cost.steps for run in arm.finished if run.record}


def _batch(arm: ArmRuns) -> set[object]:
    return {run.recipe.get("optim.batch_tokens") for run in arm.runs}


def _listed(values: set[object]) -> str:
    return ", ".join(sorted(f"{value:,}" if isinstance(value, int) else str(value) for value in values))


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, or None for no values."""
    return statistics.fmean(values) if values else None


def median(values: Sequence[float]) -> float | None:
    """Return the median, or None for no values."""
    return statistics.median(values) if values else None


def set_lines(selection: SelectedArms) -> list[SetLine]:
    """Return a line per test set and arm, by the sets of the baseline; none where there is one test set.

    The score is the task's first that can be computed from sums over items. An arm that was evaluated on other sets, or
    has diverged runs, has none.
    """
    sets = next((run.evaluation.test_sets for run in selection.baseline_row.finished if run.evaluation), None) or []
    score = next((score for score in selection.task.scores.values() if score.of_sums is not None), None)
    if score is None:
        return []
    scores = {arm.name: list(_scores(arm, sets, score)) for arm in selection.rows}
    return [
        SetLine(
            test_set=one.name,
            sentences=one.sentences,
            score=score.title,
            arm=arm,
            mean=statistics.fmean(run[number] for run in runs) if runs else None,
            sd=statistics.stdev(run[number] for run in runs) if len(runs) > 1 else None,
            n=len(runs),
        )
        for number, one in enumerate(sets)
        for arm, runs in scores.items()
    ]


def _scores(arm: ArmRuns, sets: Sequence[EvaluatedSet], score: Score) -> Iterator[list[float]]:
    """Yield the score on each test set, for each seed."""
    for run in [] if arm.diverged else arm.finished:
        if run.evaluation is not None and run.evaluation.test_sets == sets:
            yield set_scores(run.evaluation, score)


def set_scores(evaluation: Evaluation, score: Score) -> list[float]:
    """Return a score of sums on each of the evaluation's test sets; empty for a single one."""
    assert score.of_sums is not None
    ends = accumulate((one.sentences for one in evaluation.test_sets or []), initial=0)
    counts = np.array(evaluation.items[score.key])
    return [float(score.of_sums(counts[start:end].sum(axis=0))) for start, end in pairwise(ends)]
