"""A selection of runs into the report's data: everything that is computed is computed here, once."""

from collections import Counter
from collections.abc import Callable

from ablab.record import now
from ablab.report.arms import arm_line
from ablab.report.differences import difference_line
from ablab.report.differing import differing_sentences
from ablab.report.document import Document
from ablab.report.factors import effect_lines
from ablab.report.judge import judge
from ablab.report.measures import MEASURES
from ablab.report.on_sentences import OnSentences
from ablab.report.pictured import pictured
from ablab.report.selection import ArmRuns, Selection
from ablab.report.side_by_side import side_by_side


def findings(selection: Selection, resamples: int, advance: Callable[[], None] = lambda: None) -> Document:
    """Statistics, verdicts and curves. `advance` hears of each arm that has been compared."""
    measure = MEASURES[selection.metric]
    baseline = selection.arm(selection.baseline)
    assert baseline is not None
    evaluation = next((run.evaluation for arm in selection.arms for run in arm.runs if run.evaluation), None)
    differences = []
    on_sentences = _on_sentences(selection, baseline, resamples)
    for arm in selection.arms:
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
        baseline=selection.baseline,
        seeds=sorted({run.seed for arm in selection.arms for run in arm.runs}),
        test_set=None if evaluation is None else evaluation.test_name,
        sentences=None if evaluation is None else evaluation.sentences,
        signatures={} if evaluation is None else evaluation.signatures,
        notes=_notes(selection),
        claims=judge(selection),
        arms=[arm_line(arm, baseline, measure, selection.folder) for arm in selection.arms],
        differences=differences,
        effects=effect_lines(selection, measure),
        series=pictured(selection),
        artefacts=side_by_side(selection),
        differing=differing_sentences(selection),
        methods=_methods(selection, resamples),
    )


def _on_sentences(selection: Selection, baseline: ArmRuns, resamples: int) -> OnSentences | None:
    """Where the metric is one of sentences; arms judged on another test set than the baseline are not compared."""
    judged = next((run.evaluation for run in baseline.finished if run.evaluation), None)
    return None if judged is None or selection.metric != "test_bleu" else OnSentences(judged.sentences, resamples)


def _notes(selection: Selection) -> list[str]:
    """What is missing, for the top of the page."""
    notes = list(selection.notes)
    states = Counter(run.state for arm in selection.arms for run in arm.runs)
    total = sum(states.values())
    missing = {state: n for state, n in states.items() if state not in ("finished", "diverged")}
    if missing:
        said = ", ".join(f"{n} {state}" for state, n in missing.items())
        notes.append(f"{sum(missing.values())} of {total} runs are missing: {said}")
    counts = {len(arm.finished) for arm in selection.arms if not arm.diverged}
    if len(counts) > 1:
        notes.append("arms have different numbers of seeds; differences are taken over the seeds that both have")
    if selection.registered is None and selection.claims:
        notes.append("this study was never launched as one: its claims were not registered before its runs")
    return notes


def _methods(selection: Selection, resamples: int) -> list[str]:
    """How the numbers were made: for a caption, or a paper's appendix."""
    said = [
        "Seeds are paired: under one seed, shared parameters start from the same draws, and batches are equal.",
        "Arms: mean over seeds with a 95 % t interval. Differences: 95 % paired t interval, two-sided p, uncorrected.",
    ]
    if selection.claims:
        said.append(
            f"Claims: one error rate of 5 % over all {len(selection.claims)} of them (Holm); equivalence by two "
            "one-sided tests within the margin; at least 3 seeds."
        )
    if selection.metric == "test_bleu":
        said.append(
            f"Crossed: bootstrap over seeds and sentences together ({resamples:,} resamples, one resample of sentences "
            "for all runs). Test set alone: approximate randomisation of the same runs."
        )
    if selection.choosing is not None:
        said.append(selection.choosing)
    said.append("Weights were chosen on validation. An arm with diverged runs is compared by their share.")
    return said
