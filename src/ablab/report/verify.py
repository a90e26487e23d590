"""Recompute every score from hypotheses and raw references: a table that cannot be remade is no table."""

from collections.abc import Iterator
from pathlib import Path

from ablab.record import Evaluation
from ablab.report.selection import Run, Selection
from ablab.scoring import score
from ablab.screen import Screen

TOLERANCE = 1e-9
"""The same code on the same text gives the same bits; another libm may not."""


def verify(selection: Selection, screen: Screen) -> bool:
    """Say each mismatch, and how many evaluations have one; whether there was none."""
    runs = selection.where(lambda run: run.evaluation is not None)
    wrong = 0
    with screen.counting_bar("scoring again", len(runs)) as bar:
        for run in runs:
            lines = list(_mismatches(run, selection.outputs / "corpora"))
            for line in lines:
                screen.say(f"{run.folder.run_id}: {line}")
            wrong += bool(lines)
            bar.advance(1)
    differ = {0: "none differ", 1: "1 differs"}.get(wrong, f"{wrong} differ")
    screen.say(f"{len(runs)} evaluations scored again from their hypotheses: {differ}")
    return not wrong


def _mismatches(run: Run, corpora: Path) -> Iterator[str]:
    evaluation = run.evaluation
    assert evaluation is not None
    references, hypotheses = corpora / evaluation.references / "references.txt", run.hypotheses()
    if not references.exists():
        yield f"its references are gone ({references})"
        return
    text = references.read_text(encoding="utf-8").split("\n")[:-1]
    if len(text) != len(hypotheses):
        yield f"{len(hypotheses)} hypotheses for {len(text)} references"
        return
    yield from _differences(evaluation, hypotheses, text)


def _differences(evaluation: Evaluation, hypotheses: list[str], references: list[str]) -> Iterator[str]:
    again = score(hypotheses, references)
    if again.signatures != evaluation.signatures:
        yield f"scored as {evaluation.signatures}, here it would be {again.signatures}"
    for name, there, here in (("BLEU", evaluation.bleu, again.bleu), ("chrF", evaluation.chrf, again.chrf)):
        if abs(there - here) > TOLERANCE:
            yield f"{name} {there:.6f} on record, {here:.6f} from its hypotheses"
    if evaluation.statistics != again.sentences:
        yield "its statistics per sentence are not those of its hypotheses"
