"""Scores of each arm on each of several test sets that were evaluated together."""

import statistics
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np

from ablab.judge.document import SetLine
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.store.records import EvaluatedSet, Evaluation
from ablab.tasks.score import Score


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
