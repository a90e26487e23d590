"""Arms on other sentences: resampling tests, with the same draws for all pairs of a report."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ablab.report.evidence import Pairs
from ablab.report.judge import span
from ablab.report.selection import Run
from ablab.statistics.bootstrap import crossed
from ablab.statistics.randomisation import Swaps
from ablab.statistics.refusal import NotTestable
from ablab.statistics.sentences import Resamples, Scores
from ablab.statistics.student import Floats

SEED = 20190527
"""Of resampling: the same records give the same report."""


class OnSentences:
    """Tests on one test set, over seeds and sentences and over sentences alone.

    Sentences are drawn once, and a baseline is read and scored once for all the arms that are held against it.
    """

    def __init__(self, sentences: int, resamples: int) -> None:
        self._resamples = Resamples(sentences, resamples, np.random.default_rng(SEED))
        self._swaps = Swaps(sentences, resamples, np.random.default_rng(SEED))
        self._baselines: dict[tuple[int, ...], tuple[Floats, Scores]] = {}

    def told(self, both: Pairs) -> dict[str, Any]:
        """What a line of differences says of them."""
        seeds = tuple(run.seed for run in both.baseline)
        if seeds not in self._baselines:
            self._baselines[seeds] = self._scored(both.baseline)
        baseline, baseline_scores = self._baselines[seeds]
        told: dict[str, Any] = {}
        arm = _statistics(both.arm)
        try:
            found = crossed(self._resamples.scores(arm), baseline_scores, sentences=arm.shape[1])
            told |= {"crossed": span(found.interval), "crossed_p": found.p}
        except NotTestable as reason:
            told["crossed_refused"] = str(reason)
        try:
            told["randomisation_p"] = self._swaps.judge(arm, baseline).p
        except NotTestable as reason:
            told["randomisation_refused"] = str(reason)
        return told

    def _scored(self, runs: Sequence[Run]) -> tuple[Floats, Scores]:
        statistics = _statistics(runs)
        return statistics, self._resamples.scores(statistics)


def _statistics(runs: Sequence[Run]) -> Floats:
    """[seeds, sentences, k] of runs that have been judged."""
    return np.array([run.evaluation.statistics for run in runs if run.evaluation], dtype=np.float64)
