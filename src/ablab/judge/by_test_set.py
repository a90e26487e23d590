"""Scores of each arm on each of several test sets that were evaluated together."""

import statistics
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np

from ablab.judge.document import SetLine
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.sentences import corpus_bleu
from ablab.store.records import EvaluatedSet, Evaluation


def set_lines(selection: SelectedArms) -> list[SetLine]:
    """Return a line per test set and arm, by the sets of the baseline; none where there is one test set.

    An arm that was evaluated on other sets, or has diverged runs, has no score.
    """
    sets = next((run.evaluation.test_sets for run in selection.baseline_row.finished if run.evaluation), None) or []
    scores = {arm.name: list(_scores(arm, sets)) for arm in selection.rows}
    return [
        SetLine(
            test_set=one.name,
            sentences=one.sentences,
            arm=arm,
            mean=statistics.fmean(run[number] for run in runs) if runs else None,
            sd=statistics.stdev(run[number] for run in runs) if len(runs) > 1 else None,
            n=len(runs),
        )
        for number, one in enumerate(sets)
        for arm, runs in scores.items()
    ]


def _scores(arm: ArmRuns, sets: Sequence[EvaluatedSet]) -> Iterator[list[float]]:
    """Yield BLEU on each test set, for each seed."""
    for run in [] if arm.diverged else arm.finished:
        if run.evaluation is not None and run.evaluation.test_sets == sets:
            yield set_bleu(run.evaluation)


def set_bleu(evaluation: Evaluation) -> list[float]:
    """Return corpus BLEU on each of the evaluation's test sets, as sacrebleu would score it; empty for a single one."""
    ends = accumulate((one.sentences for one in evaluation.test_sets or []), initial=0)
    counts = np.array(evaluation.statistics)
    return [float(corpus_bleu(counts[start:end].sum(axis=0))) for start, end in pairwise(ends)]
