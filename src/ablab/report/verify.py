"""Recompute BLEU and chrF of a report from hypotheses and raw references; a test loss would need the model."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from ablab.console import Console
from ablab.report.runs import Run
from ablab.report.selection import Selection
from ablab.scoring import score
from ablab.store.records import Evaluation, Point
from ablab.store.stored_text import stored_text

TOLERANCE = 1e-9
"""Absolute tolerance in score points: the same code gives the same bits on the same text, but another libm may not."""


def verify(selection: Selection, console: Console) -> bool:
    """Print each mismatch and the number of evaluations that have one. Return whether there was none.

    Evaluations of pruned models are checked too.
    """
    wrong = checked = 0
    runs = selection.where(lambda run: run.evaluation is not None)
    with console.counting_bar("scoring again", len(runs)) as bar:
        for run in runs:
            for found in _of_run(run):
                lines = list(found)
                for line in lines:
                    console.say(f"{run.folder.run_id}: {line}")
                checked += 1
                wrong += bool(lines)
            bar.advance(1)
    differ = {0: "none differ", 1: "1 differs"}.get(wrong, f"{wrong} differ")
    console.say(f"{checked} evaluations scored again from their hypotheses: {differ}")
    return not wrong


def _of_run(run: Run) -> Iterator[Iterator[str]]:
    """Yield the mismatches of each evaluation the report relies on: of the whole model, and along its curves."""
    assert run.evaluation is not None
    points: dict[str, list[Point]] = {run.evaluation.evaluation_id: []}
    for point in (point for curve in run.curves for point in curve.points):
        points.setdefault(point.evaluation_id, []).append(point)
    for evaluation_id, of_one in points.items():
        whole = evaluation_id == run.evaluation.evaluation_id
        evaluation = run.evaluation if whole else run.folder.evaluation(evaluation_id)
        if evaluation is None:
            yield iter((f"the evaluation {evaluation_id} of its pruning curve is gone",))
        else:
            texts = run.folder.hypotheses(evaluation_id)
            yield chain(_unlike(of_one, evaluation), _mismatches(evaluation, texts, run.folder.outputs))


def _unlike(points: Sequence[Point], evaluation: Evaluation) -> Iterator[str]:
    for point in points:
        if (point.bleu, point.chrf) != (evaluation.bleu, evaluation.chrf):
            stored, stands = (f"BLEU {one.bleu:.6f} and chrF {one.chrf:.6f}" for one in (point, evaluation))
            yield f"{stored} in its pruning curve, {stands} in the evaluation {evaluation.evaluation_id}"


def _mismatches(evaluation: Evaluation, hypotheses: Sequence[str], outputs: Path) -> Iterator[str]:
    text = stored_text(outputs, evaluation.references)
    if text is None:
        yield f"its references are gone (corpora/{evaluation.references})"
    elif len(text.references) != len(hypotheses):
        yield f"{len(hypotheses)} hypotheses for {len(text.references)} references in {evaluation.evaluation_id}"
    else:
        yield from _differences(evaluation, hypotheses, text.references)


def _differences(evaluation: Evaluation, hypotheses: Sequence[str], references: Sequence[str]) -> Iterator[str]:
    again, where = score(hypotheses, references), f"in {evaluation.evaluation_id}"
    if again.signatures != evaluation.signatures:
        yield f"scored as {evaluation.signatures} {where}, here it would be {again.signatures}"
    for name, there, here in (("BLEU", evaluation.bleu, again.bleu), ("chrF", evaluation.chrf, again.chrf)):
        if abs(there - here) > TOLERANCE:
            yield f"{name} {there:.6f} on record {where}, {here:.6f} from its hypotheses"
    if evaluation.statistics != again.sentences:
        yield f"its statistics per sentence {where} are not those of its hypotheses"
