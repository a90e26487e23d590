"""Claims about a validation score that also chose the weights."""

from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.statistics.interval import NotTestable


def check_chosen_alike(measure: Measure, arm: ArmRuns, baseline: ArmRuns) -> None:
    """Raise NotTestable where the measure chose the weights of one arm, and those of the other not, or otherwise.

    The best of several scores is better than any one of them: the arms would differ by that alone.
    """
    if len({_method(measure, run) for one in (arm, baseline) for run in one.finished}) > 1:
        arms = f"{arm.name} and {baseline.name}"
        raise NotTestable(f"{arms} select weights differently, and by {measure.title} itself")


def chosen(measure: Measure, arm: ArmRuns, baseline: ArmRuns) -> str | None:
    """Return what the measure chose in both arms, `the best of 20 validations`; None where it chose nothing."""
    method = next((_method(measure, run) for run in arm.finished), None)
    ours, theirs = _validations(arm), _validations(baseline)
    if method is None or {ours, theirs} <= {"0", "1"}:
        return None
    counts = ours if ours == theirs else f"{ours} (baseline {theirs})"
    return method.format(counts)


def _method(measure: Measure, run: ArmRun) -> str | None:
    return measure.chosen_by(run)


def _validations(arm: ArmRuns) -> str:
    """Return the number of validations of its finished runs, or the range of it."""
    counts = [len(run.record.validations) for run in arm.finished if run.record is not None]
    few, many = min(counts, default=0), max(counts, default=0)
    return str(few) if few == many else f"{few} to {many}"
