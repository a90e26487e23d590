"""Turn a selection of runs into findings. Everything that is computed is computed here, once."""

from collections.abc import Callable, Iterator, Sequence

from ablab.judge.arms import arm_line, set_lines
from ablab.judge.claims import judge
from ablab.judge.comparisons import pictured, side_by_side
from ablab.judge.differences import OnSentences, decided, difference_line, differing_sentences
from ablab.judge.document import Beside, Document
from ablab.judge.drift import drifts
from ablab.judge.effects import effect_lines
from ablab.judge.lines import ClaimLine, DifferenceLine, EffectLine
from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.judge.sensitivity import metric_lines
from ablab.judge.setup import setup
from ablab.judge.tuned import tuning_lines, tuning_series, with_tuning
from ablab.judge.worth import worth_lines
from ablab.statistics.interval import NotTestable
from ablab.store.records import now
from ablab.tasks.task import Nouns
from ablab.text import digits_beside


def findings(selection: SelectedArms, resamples: int, advance: Callable[[], None] = lambda: None) -> Document:
    """Compute statistics, verdicts and curves: the report's data, of which the report says the sentences.

    `advance` is called after each arm has been compared.
    """
    measure, claims = selection.measure, with_tuning(selection, judge(selection))
    evaluation = next((run.evaluation for arm in selection.arms for run in arm.runs if run.evaluation), None)
    effects, hole = _effects(selection, claims)
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
        baseline=selection.baseline_row.name,
        within=selection.within,
        seeds=sorted({run.seed for arm in selection.arms for run in arm.runs}),
        test_set=evaluation.test_name if evaluation and evaluation.sentences and measure.of_test else None,
        sentences=None if evaluation is None else evaluation.sentences,
        nouns=selection.task.nouns if selection.origin is None else Nouns(),
        signatures={} if evaluation is None else evaluation.signatures,
        notes=hole,
        claims=claims,
        arms=[arm_line(selection, arm, selection.folder) for arm in selection.rows],
        beside=[_beside(name, other) for name, other in selection.beside.items()],
        loss=None if selection.loss is None else _beside(selection.task.loss, selection.loss),
        differences=list(_differences(selection, claims, resamples, advance)),
        effects=effects,
        test_sets=set_lines(selection),
        metrics=metric_lines(selection),
        series=[*tuning_series(selection), *pictured(selection)],
        artefacts=side_by_side(selection),
        differing=differing_sentences(selection),
        methods=[],
        stamp=selection.stamp,
        origin=selection.origin,
        lost_stamps=list(selection.lost_stamps),
        setup=setup(selection),
        tuning=tuning_lines(selection),
        drift=drifts(selection),
        worth=worth_lines(selection),
    )


def _differences(
    selection: SelectedArms, claims: Sequence[ClaimLine], resamples: int, advance: Callable[[], None]
) -> Iterator[DifferenceLine]:
    on_sentences = {row.name: _on_sentences(selection, row, resamples) for row in selection.baseline_rows}
    for arm in selection.rows:
        baseline = selection.baseline_of(arm)
        if arm is not baseline:
            line = difference_line(selection, arm, baseline, on_sentences[baseline.name])
            yield decided(line, claims, selection)
        advance()


def _beside(name: str, measure: Measure) -> Beside:
    return Beside(name=name, title=measure.title, unit=measure.unit, digits=digits_beside(measure.digits))


def _on_sentences(selection: SelectedArms, baseline: ArmRuns, resamples: int) -> OnSentences | None:
    """Return the tests over sentences, or None where the metric is not made of any, or no baseline run has them.

    Arms evaluated on another test set than the baseline are not compared.
    """
    items = selection.measure.items
    read = map(items.read, baseline.finished) if items else iter(())
    first = next((found for found in read if found is not None), None)
    return None if items is None or first is None else OnSentences(items, len(first), resamples)


def _effects(selection: SelectedArms, claims: Sequence[ClaimLine]) -> tuple[list[EffectLine], list[str]]:
    """Return the effects, and a note on why there are none where the design should have some."""
    try:
        return effect_lines(selection, selection.measure, claims), []
    except NotTestable as reason:
        return [], [f"no main effects and interactions: {reason}"]
