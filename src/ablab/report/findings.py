"""A selection of runs into the report's data: everything that is computed is computed here, once."""

from collections import Counter
from collections.abc import Callable

from ablab.report.arms import arm_line
from ablab.report.differences import difference_line
from ablab.report.differing import differing_sentences
from ablab.report.document import Document, EffectLine
from ablab.report.factors import effect_lines
from ablab.report.judge import judge
from ablab.report.measures import MEASURES, Measure
from ablab.report.methods import methods
from ablab.report.on_sentences import OnSentences
from ablab.report.pictured import pictured
from ablab.report.selection import ArmRuns, Selection
from ablab.report.side_by_side import side_by_side
from ablab.statistics.refusal import NotTestable
from ablab.store.records import now

MOST_NAMED = 5
"""Runs in a note."""


def findings(selection: Selection, resamples: int, advance: Callable[[], None] = lambda: None) -> Document:
    """Statistics, verdicts and curves. `advance` hears of each arm that has been compared."""
    measure = MEASURES[selection.metric]
    baseline = selection.baseline_row
    evaluation = next((run.evaluation for arm in selection.arms for run in arm.runs if run.evaluation), None)
    differences = []
    effects, hole = _effects(selection, measure)
    on_sentences = _on_sentences(selection, baseline, resamples)
    for arm in selection.rows:
        if arm is not baseline:
            differences.append(difference_line(selection, arm, baseline, measure, on_sentences))
        advance()
    return Document(
        name=selection.name,
        question=selection.question,
        source=selection.source,
        made=now(),
        metric=selection.metric,
        title=measure.title,
        unit=measure.unit,
        digits=measure.digits,
        higher_is_better=measure.higher_is_better,
        baseline=baseline.name,
        seeds=sorted({run.seed for arm in selection.arms for run in arm.runs}),
        test_set=None if evaluation is None else evaluation.test_name,
        sentences=None if evaluation is None else evaluation.sentences,
        signatures={} if evaluation is None else evaluation.signatures,
        notes=[*_notes(selection), *hole],
        claims=judge(selection),
        arms=[arm_line(arm, baseline, measure, selection.folder) for arm in selection.rows],
        differences=differences,
        effects=effects,
        series=pictured(selection),
        artefacts=side_by_side(selection),
        differing=differing_sentences(selection),
        methods=list(methods(selection, resamples)),
    )


def _on_sentences(selection: Selection, baseline: ArmRuns, resamples: int) -> OnSentences | None:
    """Where the metric is one of sentences; arms judged on another test set than the baseline are not compared."""
    judged = next((run.evaluation for run in baseline.finished if run.evaluation), None)
    return None if judged is None or selection.metric != "test_bleu" else OnSentences(judged.sentences, resamples)


def _effects(selection: Selection, measure: Measure) -> tuple[list[EffectLine], list[str]]:
    """And why there are none, where a design should have some."""
    try:
        return effect_lines(selection, measure), []
    except NotTestable as reason:
        return [], [f"no main effects and interactions: {reason}"]


def _notes(selection: Selection) -> list[str]:
    """What is missing, for the top of the page."""
    notes = list(selection.notes)
    states = Counter(run.state for arm in selection.rows for run in arm.runs)
    total = sum(states.values())
    missing = {state: n for state, n in states.items() if state not in ("finished", "diverged")}
    if missing:
        said = ", ".join(f"{n} {state}" for state, n in missing.items())
        notes.append(f"{sum(missing.values())} of {total} runs are missing: {said}")
    counts = {len(arm.finished) for arm in selection.arms if not arm.diverged}
    if len(counts) > 1:
        notes.append("arms have different numbers of seeds; differences are taken over the seeds that both have")
    if selection.where(lambda run: run.record is not None and run.record.config.get("smoke") is True):
        notes.append("smoke runs: every stage ran, on a sliver of data the scores mean nothing")
    for what, gone in (
        ("translations", selection.where(lambda run: run.has_lost_translations)),
        ("training curves", selection.where(lambda run: run.record is not None and not run.folder.metrics.exists())),
    ):
        if gone:
            named = ", ".join(run.folder.run_id for run in gone[:MOST_NAMED]) + ", ..." * (len(gone) > MOST_NAMED)
            notes.append(f"the {what} of {len(gone)} runs are gone: {named}")
    if selection.registered is None and selection.claims:
        notes.append("this study was never launched as one: its claims were not registered before its runs")
    return notes
