"""Comparison of arms with diverged runs: by ranks of all runs, or by shares of failures where runs are few.

Every run of two arms is ranked by its score, and diverged runs share the last rank. By the mean of the survivors, an
arm would gain by losing its worst runs.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics.interval import Interval, check_level
from ablab.statistics.paired import ROUNDING
from ablab.statistics.student import Floats

FEWEST_RANKED = 5
"""Runs an arm from which arms with diverged runs are ranked. With 4, even complete separation has p = 0.029, too much
for a study of two claims; with 5 it is 0.008, little enough for six.
"""

DIVERGED = -np.inf
"""The score of a diverged run: worse than any other."""

MOST_EXACT = 100
"""Runs of both arms up to which p is exact."""


@dataclass(frozen=True)
class RankComparison:
    """The pairs of a run of the arm and one of the baseline. `runs`: of the smaller arm.

    `won`, `lost`: shares of the pairs in which the arm's run is better, or worse; the rest are ties, as of two diverged
    runs. `p`: two-sided, of no difference; `beyond`: two-sided, of a difference that is no larger than the margin;
    `kept`: two-sided, of an arm that is worse by the margin or more. All are uncorrected.
    """

    runs: int
    won: float
    lost: float
    p: float
    beyond: float
    kept: float

    method = "Wilcoxon-Mann-Whitney, diverged runs last"

    @property
    def difference(self) -> float:
        """Share of the pairs won less those lost, from -1 to 1 (Cliff 1993); above 0, the arm is better."""
        return self.won - self.lost

    @property
    def better(self) -> float:
        """1 where the arm is the better one, -1 where the baseline is, else 0."""
        return float(np.sign(self.difference))


def compare_ranks(arm: npt.ArrayLike, baseline: npt.ArrayLike, margin: float = 0.0) -> RankComparison:
    """Compare two arms by worst-rank scores (Lachin 1999, Worst-rank score analysis with informatively missing data).

    arm, baseline: [runs], higher is better, DIVERGED for a diverged run; margin >= 0, in units of the scores. The test
    is that of Wilcoxon, Mann and Whitney with midranks. It is exact over all divisions of the runs into two arms
    where outcomes are distributed alike, failures included, whatever that distribution is. A difference is larger
    than the margin if the arm stays ahead when the margin is taken off its scores, or behind when it is added; the
    arm is not worse by the margin if it is ahead when the margin is added. A diverged run stays one. Runs under one
    seed are not taken as pairs; as with shares of failures, that errs on the safe side.

    There is no interval. The approximate ones fail where arms hardly overlap, which is where a few runs can show
    something, and none of them agrees with the exact test.
    """
    ours, theirs = _scores(arm, "arm"), _scores(baseline, "baseline")
    if not margin >= 0:
        raise ValueError(f"a margin is at least 0, got {margin=}.")
    p, beyond, kept = _two_sided(ours, theirs), 1.0, 1.0
    for sign in (1, -1):
        shifted = _shifted(ours, -sign * margin, theirs)
        if sign * _ahead(shifted, theirs).sum() > 0:
            beyond = max(p, _two_sided(shifted, theirs))
    raised = _shifted(ours, margin, theirs)
    if _ahead(raised, theirs).sum() > 0:
        kept = _two_sided(raised, theirs)
    ahead = _ahead(ours, theirs)
    return RankComparison(min(ahead.shape), float((ahead > 0).mean()), float((ahead < 0).mean()), p, beyond, kept)


def _shifted(scores: Floats, by: float, others: Floats) -> Floats:
    """Return the scores moved; one that then is another but for rounding is that one: a tie."""
    moved, near = scores + by, others[np.isfinite(others)]
    if near.size:
        nearest = near[np.abs(moved[:, None] - near).argmin(axis=1)]
        size = float(np.abs([*near, *scores[np.isfinite(scores)]]).max())
        return np.where(np.abs(moved - nearest) <= ROUNDING * size, nearest, moved)
    return moved


def _scores(values: npt.ArrayLike, name: str) -> Floats:
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or not scores.size or not (np.isfinite(scores) | (scores == DIVERGED)).all():
        raise ValueError(f"{name} must be [runs] of numbers, or {DIVERGED} for a diverged run, got {scores}.")
    return scores


def _ahead(arm: Floats, baseline: Floats) -> npt.NDArray[np.int64]:
    """Return 1 where the arm's run is better, -1 where it is worse, 0 for ties: [runs, runs of the baseline]."""
    return (arm[:, None] > baseline).astype(np.int64) - (arm[:, None] < baseline)


def _two_sided(arm: Floats, baseline: Floats) -> float:
    """Return twice the smaller tail of the arm's rank sum, at most 1."""
    from scipy.stats import mannwhitneyu, rankdata

    both = np.concatenate([arm, baseline])
    if both.size > MOST_EXACT:
        # The normal approximation, with corrections for ties and continuity. Its ranks need finite scores.
        both = rankdata(both)
        return float(mannwhitneyu(both[: arm.size], both[arm.size :], method="asymptotic").pvalue)
    ranks = np.rint(2 * rankdata(both)).astype(np.int64)  # doubled, midranks are whole numbers
    chances = _rank_sums(ranks, arm.size)
    found = int(ranks[: arm.size].sum())
    return float(min(1.0, 2 * min(chances[: found + 1].sum(), chances[found:].sum())))


def _rank_sums(ranks: npt.NDArray[np.int64], size: int) -> Floats:
    """Return the chance of each sum of `size` of these ranks, drawn without replacement.

    Sets are counted by size and sum, one rank after another (the shift algorithm of Streitberg & Roehmel 1986).
    """
    counts = np.zeros((size + 1, int(ranks.sum()) + 1))
    counts[0, 0] = 1.0
    for rank in ranks:
        counts[1:, rank:] += counts[:-1, :-rank]
    chances: Floats = counts[size] / counts[size].sum()
    return chances


@dataclass(frozen=True)
class Shares:
    """The shares of failed runs. `runs`: of the smaller arm; `difference`: arm less baseline.

    `p`: two-sided, uncorrected.
    """

    runs: int
    difference: float
    p: float

    method = "Boschloo's exact test"

    @property
    def better(self) -> float:
        """1 where the arm fails less often, -1 where it fails more often, else 0."""
        return float((self.difference < 0) - (self.difference > 0))

    @property
    def beyond(self) -> float:
        """The same as `p`: a share has no margin."""
        return self.p

    @property
    def kept(self) -> float:
        """The same where the arm fails less often."""
        return self.p if self.better > 0 else 1.0


def share_interval(failed: int, runs: int, level: float = 0.95) -> Interval:
    """Return the exact interval of a share by Clopper & Pearson (1934), whose coverage is never below its level.

    With 3 to 10 runs that matters more than its width: Wilson's interval covers 95 % on average over shares only.
    """
    from scipy.stats import binomtest

    if not 0 <= failed <= runs or runs < 1:
        raise ValueError(f"0 <= failed <= runs and runs >= 1, got {failed=}, {runs=}.")
    found = binomtest(failed, runs).proportion_ci(check_level(level), method="exact")
    return Interval(float(found.low), float(found.high), level, "Clopper-Pearson")


def compare_shares(arm: tuple[int, int], baseline: tuple[int, int]) -> Shares:
    """Exact unconditional test of Boschloo (1970): never less powerful than Fisher's, and as exact.

    arm, baseline: (failed, runs). With 3 seeds, all against none: p = 1/32, where Fisher's exact test says 1/10.
    Runs under one seed are not taken as pairs. McNemar's exact test looks at seeds with unlike outcomes only, so below
    six of them it cannot reach 5 % whatever happens. If failing together is no rarer than chance, as with shared
    initial weights and batches, leaving the pairs out errs on the safe side.
    """
    from scipy.stats import boschloo_exact

    (ours, runs), (theirs, others) = arm, baseline
    p = float(boschloo_exact([[ours, theirs], [runs - ours, others - theirs]]).pvalue)
    return Shares(min(runs, others), ours / runs - theirs / others, min(1.0, p))
