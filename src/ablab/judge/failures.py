"""Comparison of arms with diverged runs: by ranks of all runs, or by shares of failures where runs are few."""

from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRuns
from ablab.statistics.diverged import DIVERGED, FEWEST_RANKED, RankComparison, compare_ranks, compare_shares
from ablab.statistics.interval import NotTestable
from ablab.statistics.verdict import Failures

SHARE = Measure("share of failures", "share of runs", 2, False, None, lambda _: None)
RANK = Measure("ranks of all runs", "of pairs, won less lost", 2, True, None, lambda _: None)
"""What arms with diverged runs are compared by. Neither is the value of a run."""


def any_diverged(arm: ArmRuns, baseline: ArmRuns) -> bool:
    return bool(arm.diverged or baseline.diverged)


def are_ranked(arm: ArmRuns, baseline: ArmRuns) -> bool:
    """Return whether both arms have enough planned runs for ranks."""
    return min(len(arm.runs), len(baseline.runs)) >= FEWEST_RANKED


def scores_matter(arm: ArmRuns, baseline: ArmRuns) -> bool:
    """Return whether scores take part in a comparison: not in one of shares, nor with an arm that has none."""
    if not any_diverged(arm, baseline):
        return True
    return are_ranked(arm, baseline) and bool(arm.finished and baseline.finished)


def failures(arm: ArmRuns, baseline: ArmRuns, *, higher_is_better: bool) -> Failures:
    """Compare the shares of diverged runs. Raises NotTestable where a run is neither finished nor diverged."""
    _check_ended(arm, baseline)
    shares = compare_shares((len(arm.diverged), len(arm.runs)), (len(baseline.diverged), len(baseline.runs)))
    return Failures(shares, higher_is_better)


def ranked(arm: ArmRuns, baseline: ArmRuns, measure: Measure, margin: float) -> Failures:
    """Rank all runs, diverged ones last. Raises NotTestable as `failures`, and where a finished run has no value."""
    _check_ended(arm, baseline)
    sign = 1 if measure.higher_is_better else -1
    ours, theirs = (
        [*(sign * value for value in measure.values(one.finished)), *[DIVERGED] * len(one.diverged)]
        for one in (arm, baseline)
    )
    return Failures(compare_ranks(ours, theirs, margin), measure.higher_is_better)


def _check_ended(arm: ArmRuns, baseline: ArmRuns) -> None:
    """Raise NotTestable unless every planned run has ended: a failure that may still be retried is no outcome."""
    for one in (arm, baseline):
        open_ = [run for run in one.runs if not run.has_ended]
        if open_:
            raise NotTestable(f"{len(open_)} of {len(one.runs)} runs of {one.name} are neither finished nor diverged")


def compared(found: object, measure: Measure) -> Measure:
    """Return the measure that was compared: another than the claim's where runs diverged."""
    if not isinstance(found, Failures):
        return measure
    return RANK if isinstance(found.compared, RankComparison) else SHARE
