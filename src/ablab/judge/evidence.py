"""Evidence for comparisons: runs paired by seed, or the reason why two arms cannot be judged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ablab.judge.failures import any_diverged, are_ranked, failures, ranked, scores_matter
from ablab.judge.metrics import Measure
from ablab.judge.origins import unlike
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.statistics.convergence import Drift, drift
from ablab.statistics.interval import NotTestable
from ablab.statistics.paired import without_rounding
from ablab.statistics.verdict import Failures
from ablab.tasks.score import Scale, Score
from ablab.text import number

Evidence = Sequence[float] | Failures | NotTestable


@dataclass(frozen=True)
class Pairs:
    """Runs of both arms under the same seeds, ordered by seed."""

    arm: Sequence[ArmRun]
    baseline: Sequence[ArmRun]


def pairs(arm: ArmRuns, baseline: ArmRuns) -> Pairs:
    """Pair the runs of the seeds that have finished in both arms."""
    theirs = {run.seed: run for run in baseline.finished}
    ours = {run.seed: run for run in arm.finished if run.seed in theirs}
    return Pairs([ours[seed] for seed in sorted(ours)], [theirs[seed] for seed in sorted(ours)])


def evidence(arm: ArmRuns, baseline: ArmRuns, measure: Measure, margin: float | None) -> Evidence:
    """Return the evidence for a claim: as `observed`, or the reason why not.

    Where the measure is of training, it must be without a time limit and without smoke runs, and have converged.
    margin: None for a claim about what so much compute gives, which asks for no convergence.
    """
    progress = measure.progress
    if progress is not None and scores_matter(arm, baseline):
        try:
            for one in (arm, baseline):
                _check_whole(one)
                if margin is not None:
                    is_of_progress = margin and measure.unit == progress.unit
                    _check_converged(one, progress, margin if is_of_progress else progress.enough)
        except NotTestable as reason:
            return reason
    return observed(arm, baseline, measure, margin or 0.0)


def observed(arm: ArmRuns, baseline: ArmRuns, measure: Measure, margin: float = 0.0) -> Evidence:
    """Return differences paired by seed, a comparison of failures where runs diverged, or the reason for neither.

    Survivors of diverged arms are never averaged. From 5 planned runs an arm, all runs are ranked; shares of failures
    are compared with fewer.
    """
    try:
        check_comparable(arm, baseline, measure)
        if not measure.of_machine and any_diverged(arm, baseline):
            if are_ranked(arm, baseline):
                check_chosen_alike(measure, arm, baseline)
                return ranked(arm, baseline, measure, margin)
            return failures(arm, baseline, higher_is_better=measure.higher_is_better)
        check_chosen_alike(measure, arm, baseline)
        found = pairs(arm, baseline)
        if not found.arm:
            raise NotTestable("no seed has finished in both arms")
        ours, theirs = measure.values(found.arm), measure.values(found.baseline)
        if measure.of_machine:
            _check_alike(measure, arm, baseline)
            _check_machine(measure, {arm.name: ours, baseline.name: theirs})
    except NotTestable as reason:
        return reason
    return list(without_rounding(np.subtract(ours, theirs), [ours, theirs]))


def convergence(arm: ArmRuns, progress: Score, threshold: float) -> Drift:
    """Test whether validation was still improving at the end. Raises NotTestable where that cannot be decided."""
    found = arm.once(("drift", progress.key, threshold), lambda: _drift(arm, progress, threshold))
    if isinstance(found, NotTestable):
        raise found
    return found


def _drift(arm: ArmRuns, progress: Score, threshold: float) -> Drift | NotTestable:
    curves = []
    for run in arm.finished:
        if run.record is None or not all(progress.key in validation for validation in run.record.validations):
            return NotTestable(f"the validations of {arm.name} are unknown")
        steps = [validation["step"] for validation in run.record.validations]
        curves.append((steps, [validation[progress.key] for validation in run.record.validations]))
    try:
        return drift(curves, threshold=threshold, higher_is_better=progress.higher_is_better)
    except NotTestable as reason:
        return reason


def is_smoke(run: ArmRun) -> bool:
    """Return whether the run was a trial, whose scores mean nothing."""
    return run.record is not None and bool(run.record.config.get("smoke"))


def _check_whole(arm: ArmRuns) -> None:
    limited = [run for run in arm.finished if run.record is not None and run.record.time_limited]
    if limited:
        raise NotTestable(f"{arm.name}: training ended by the clock, so that scores depend on the machine")
    if any(map(is_smoke, arm.finished)):
        raise NotTestable("smoke runs: their scores mean nothing")
    if not arm.finished:
        raise NotTestable(f"{arm.name} has no finished run")


def _check_converged(arm: ArmRuns, progress: Score, threshold: float) -> None:
    state = convergence(arm, progress, threshold)
    if state.state == "moving":
        gained = f"{progress.title} got better by {number(state.improvement, progress.digits)}"
        raise NotTestable(f"{arm.name} is under-trained: {gained} in the last fifth of training")


EVEN = 1.5
"""Largest allowed ratio of two runs of an arm: load on the machine is no variation over seeds."""


def _check_alike(measure: Measure, arm: ArmRuns, baseline: ArmRuns) -> None:
    if (other := unlike(arm, baseline)) is not None:
        raise NotTestable(f"{arm.name} and {baseline.name} differ in {other}, on which {measure.title} depends")


def _check_machine(measure: Measure, values: Mapping[str, Sequence[float]]) -> None:
    for name, found in values.items():
        if max(found) > EVEN * min(found):
            apart = f"{min(found):g} in one run and {max(found):g} in another"
            if min(found) > 0:
                apart = f"{max(found) / min(found):.1f} times as high in one run as in another"
            raise NotTestable(f"{measure.title} of {name} is {apart}: more than the seed differed on the machine")


def check_comparable(arm: ArmRuns, baseline: ArmRuns, measure: Measure | None = None) -> None:
    """Raise NotTestable unless test text, scoring and training corpus are the same in both arms, and the scale too.

    measure: in which they are compared; None where it does not matter.
    """
    for what in ("references", "test texts", "signatures", "data.digest", "corpora"):
        values = _identities(arm, what) | _identities(baseline, what)
        if len(values) > 1:
            raise NotTestable(
                f"{what} differ between {arm.name} and {baseline.name}: {'; '.join(sorted(map(str, values)))}"
            )
    if measure is not None:
        check_scale((arm, baseline), measure)


def check_scale(arms: Iterable[ArmRuns], measure: Measure) -> None:
    """Raise NotTestable unless the values of all arms are in one measure."""
    if (reason := off_scale(arms, measure)) is not None:
        raise NotTestable(reason)


def off_scale(arms: Iterable[ArmRuns], measure: Measure) -> str | None:
    """Return why values of these arms cannot be compared, such as losses per token of two vocabularies; or None."""
    if (scale := measure.scale) is None:
        return None
    found = [(run.recipe, _settings(arm, scale)) for arm in arms for run in arm.runs[:1]]
    if all(settings == found[0][1] for _, settings in found):
        return None
    return scale.unlike(measure.title, [recipe for recipe, _ in found])


def _settings(arm: ArmRuns, scale: Scale) -> Mapping[str, Any]:
    """Return the settings of an arm that decide the scale."""
    return arm.once(scale, lambda: scale.settings(arm.runs[0].recipe))


def by_scale(arms: Iterable[ArmRuns], measure: Measure) -> list[list[ArmRuns]]:
    """Return the arms in groups whose values are in one measure."""
    groups: list[list[ArmRuns]] = []
    for arm in arms:
        group = next((group for group in groups if off_scale((group[0], arm), measure) is None), None)
        if group is None:
            groups.append([arm])
        else:
            group.append(arm)
    return groups


def are_comparable(arm: ArmRuns, baseline: ArmRuns, measure: Measure | None = None) -> bool:
    """Return whether `check_comparable` passes."""
    try:
        check_comparable(arm, baseline, measure)
    except NotTestable:
        return False
    return True


def _identities(arm: ArmRuns, what: str) -> set[str]:
    """Return what the arm's finished runs were compared on."""
    return arm.once(what, lambda: {found for run in arm.finished if (found := _identity(run, what)) is not None})


def _identity(run: ArmRun, what: str) -> str | None:
    """Return what the run was compared on; None where only its scores are known."""
    if what == "data.digest":
        return str(run.recipe.get(what))
    if what == "corpora":  # as a table of results names them
        return run.recipe.get("corpus")
    if run.evaluation is None:
        return None
    if what == "test texts":  # of a task that has no references, by all that decides them but their name
        text = run.evaluation.settings.get("test")
        if run.evaluation.references or not isinstance(text, Mapping):
            return None
        return str(sorted((key, value) for key, value in text.items() if key != "name"))
    if what == "references":
        return run.evaluation.references
    return ", ".join(f"{score} {signature}" for score, signature in sorted(run.evaluation.signatures.items())) or "none"


def check_chosen_alike(measure: Measure, arm: ArmRuns, baseline: ArmRuns) -> None:
    """Raise NotTestable where the measure chose the weights of one arm, and those of the other not, or otherwise.

    The best of several scores is better than any one of them: the arms would differ by that alone.
    """
    if len({measure.chosen_by(run) for one in (arm, baseline) for run in one.finished}) > 1:
        arms = f"{arm.name} and {baseline.name}"
        raise NotTestable(f"{arms} select weights differently, and by {measure.title} itself")


def chosen(measure: Measure, arm: ArmRuns, baseline: ArmRuns) -> str | None:
    """Return what the measure chose in both arms, `the best of 20 validations`; None where it chose nothing."""
    method = next((measure.chosen_by(run) for run in arm.finished), None)
    ours, theirs = _validations(arm), _validations(baseline)
    if method is None or {ours, theirs} <= {"0", "1"}:
        return None
    counts = ours if ours == theirs else f"{ours} (baseline {theirs})"
    return method.format(counts)


def _validations(arm: ArmRuns) -> str:
    """Return the number of validations of its finished runs, or the range of it."""
    counts = [len(run.record.validations) for run in arm.finished if run.record is not None]
    few, many = min(counts, default=0), max(counts, default=0)
    return str(few) if few == many else f"{few} to {many}"
