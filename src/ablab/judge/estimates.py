"""A claimed difference by both methods, the runs that nearly failed, and signs that a test's conditions fail."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ablab.judge.contrasts import arms_of, evidence_of, independent, shared_scores, sharing
from ablab.judge.evidence import Evidence, are_comparable, by_scale
from ablab.judge.lines import OtherTest, Sign, Span
from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics import student
from ablab.statistics.conditions import follow_the_order, in_two_groups, near_failures, ratios, shared
from ablab.statistics.interval import NotTestable
from ablab.statistics.moderated import Moderated, moderated_contrast
from ablab.statistics.paired import Paired, of_differences
from ablab.study.claims import Settled
from ablab.study.tuning import TUNED, TUNING
from ablab.tasks.registry import of_arms


@dataclass(frozen=True)
class Estimates:
    """The same comparison by both methods. `differences`: [seeds], paired.

    `scores`: of each arm that is compared, under the same seeds; `others`: of those that lend, under their own, and
    `beside`: of those of them that have all of the same seeds, under these. `levels`: of `within`, of the arms compared
    and of those that lend. There are none of speeds and memory, and `other` is None then.
    """

    differences: Sequence[float]
    scores: Sequence[Sequence[float]]
    others: Sequence[Sequence[float]]
    beside: Sequence[Sequence[float]]
    levels: Sequence[str | None]
    decisive: Paired | Moderated
    other: Paired | Moderated | None

    @property
    def figures(self) -> dict[str, Any]:
        """The fields of a line that no claim is made of: at 95 %, uncorrected."""
        interval, other = Span.of(self.decisive.at(LEVEL)), self.by_the_other(LEVEL, within=False)
        return {"interval": interval, "p": self.decisive.p, "test": self.decisive.method, "other": other}

    def by_the_other(self, level: float, *, within: bool) -> OtherTest | None:
        """Return what the method that does not decide says, at the level of the one that does.

        `within`: the verdict is about lying within the margin, on which the p of no difference has no bearing.
        """
        if self.other is None:
            return None
        p = None if within else self.other.p
        return OtherTest(test=self.other.method, interval=Span.of(self.other.at(level)), p=p)


LEVEL = 0.95
"""Of intervals by which no claim is judged."""

NearFailures = Mapping[str, ArmRun]
"""The finished run that nearly failed, by arm; arms without one are left out."""


def estimates(selection: SelectedArms, claim: Settled, measure: Measure) -> Evidence | Estimates:
    """Return the comparison that a claim is about by both methods; other evidence where there is only that."""
    found = evidence_of(selection, claim, measure)
    if not borrows(claim, measure) or not isinstance(found, list):
        return found
    try:
        return by_both(selection, arms_of(selection, claim), claim.weights.values(), measure, found)
    except NotTestable as reason:
        return reason


def by_both(
    selection: SelectedArms,
    arms: Sequence[ArmRuns],
    weights: Iterable[float],
    measure: Measure,
    differences: Sequence[float],
) -> Estimates:
    """Return the weighted sum of arms by both methods, of which the selection's decides. Raises NotTestable."""
    if measure.of_machine:
        return Estimates(differences, [], [], [], [], of_differences(differences), None)
    scores, lending = shared_scores(arms, measure), lenders(selection, arms, measure)
    paired, others = of_differences(differences), [_values(arm, measure) for arm in lending]
    own_weights, own_scores = independent(arms, list(weights), scores)
    both = paired, moderated_contrast(own_scores, own_weights, others)
    beside, levels = list(_beside(arms, lending, measure)), [level_of(selection, arm) for arm in (*arms, *lending)]
    decisive, other = reversed(both) if selection.error == "moderated" else both
    return Estimates(differences, scores, others, beside, levels, decisive, other)


def _beside(arms: Sequence[ArmRuns], lending: Sequence[ArmRuns], measure: Measure) -> Iterator[list[float]]:
    """Yield the scores of arms that have all seeds that the compared arms share, under these seeds."""
    seeds = set.intersection(*({run.seed for run in arm.finished} for arm in arms))
    for values in (_by_seed(arm, measure) for arm in lending):
        if values.keys() >= seeds:
            yield [values[seed] for seed in sorted(seeds)]


def _by_seed(arm: ArmRuns, measure: Measure) -> dict[int, float]:
    """Return the scores of an arm all of whose finished runs have one."""
    seeds = (run.seed for run in arm.finished)
    return arm.once(("by seed", measure), lambda: dict(zip(seeds, _values(arm, measure), strict=True)))


def borrows(claim: Settled, measure: Measure) -> bool:
    """Return whether the other arms say something about the noise of a claim.

    Speeds and pruned models scatter for reasons of their own, and are compared by their pairs alone.
    """
    return claim.metric not in of_arms() and not measure.of_machine


def borrowed(selection: SelectedArms, arms: Sequence[ArmRuns], measure: Measure) -> list[list[float]]:
    """Return the scores of the arms that lend a comparison of these their scatter, each under its own seeds."""
    return [_values(arm, measure) for arm in lenders(selection, arms, measure)]


def lenders(selection: SelectedArms, arms: Sequence[ArmRuns], measure: Measure) -> list[ArmRuns]:
    """Return the other arms from whose scatter a comparison of these may borrow.

    Arms that fail scatter for reasons of their own; arms scored otherwise, or of another level of `within`, such as a
    language, on another scale. Of arms that share runs, as those that differ by decoding do, one lends its scatter; and
    so of those with equal scores. It is the one that is evaluated as the compared arms are, and of several the first by
    name, so that no order in a file decides.
    """
    ways = {run.evaluation.evaluation_id for arm in arms for run in arm.finished if run.evaluation}
    own = frozenset[str]().union(*(arm.folders for arm in arms))
    known = {tuple(_values(arm, measure)) for arm in arms}
    found = []
    for other in selection.rows:
        if other.diverged or len(other.finished) < 2 or not own.isdisjoint(other.folders):
            continue
        alike = (arm for arm in arms if level_of(selection, arm) == level_of(selection, other))
        if not any(are_comparable(other, arm, measure) for arm in alike):
            continue
        values = tuple(_values(other, measure))
        if len(values) == len(other.finished) and values not in known:
            found.append((other, {*other.folders, values}))
    found.sort(key=lambda one: (not any(way in ways for _, way in one[0].evaluated), one[0].name))
    return [found[places[0]][0] for places in sharing([told for _, told in found])]


def level_of(selection: SelectedArms, arm: ArmRuns) -> str | None:
    """Return the baseline of its level of the factor `within`, usual or tuned; None where there is no such factor."""
    if selection.within in (None, TUNING):
        return None
    return selection.baseline_name_of(arm).removesuffix(TUNED)


def nearly_failed(selection: SelectedArms, measure: Measure) -> NearFailures:
    """Return the finished run of each arm that nearly failed by this measure, beside the scatter of arms on its scale.

    Those of other levels of `within`, such as languages, scatter in their own ways.
    """
    levels: dict[str | None, list[ArmRuns]] = {}
    for arm in selection.rows:
        levels.setdefault(level_of(selection, arm), []).append(arm)
    found: dict[str, ArmRun] = {}
    for group in (group for arms in levels.values() for group in by_scale(arms, measure)):
        scored = {arm.name: [run for run in arm.finished if measure.value(run) is not None] for arm in group}
        values = {arm.name: np.array(_values(arm, measure)) for arm in group}
        worst = near_failures(values, higher_is_better=measure.higher_is_better)
        found |= {name: scored[name][place] for name, place in worst.items()}
    return found


def beats(run: ArmRun, arm: ArmRuns, measure: Measure) -> bool:
    """Return whether a run is better than every finished run of an arm."""
    sign = 1.0 if measure.higher_is_better else -1.0
    value, theirs = measure.value(run), _values(arm, measure)
    return value is not None and all(sign * value > sign * other for other in theirs)


def _values(arm: ArmRuns, measure: Measure) -> list[float]:
    return arm.once(measure, lambda: [value for run in arm.finished if (value := measure.value(run)) is not None])


WIDE = 3.0
"""Ratio of an arm's standard deviation to that of the others from which a reader should know of it."""


def conditions(found: Estimates, names: Sequence[str], level: float) -> Iterator[Sign]:
    """Yield what the scores of a claim's arms show. names: of these arms; level: of the claim's interval."""
    everyone = [*found.scores, *found.others]
    for of_within in dict.fromkeys(found.levels):
        places = [place for place, one in enumerate(found.levels) if one == of_within]
        for place, ratio in zip(places, ratios([everyone[place] for place in places]), strict=True):
            if place < len(names) and ratio > WIDE:
                yield Sign(kind="wide", arm=names[place], figure=float(ratio))
    if in_two_groups(everyone):
        yield Sign(kind="groups")
    if follow_the_order([*found.scores, *found.beside]):
        yield Sign(kind="order")
    if len(found.scores) == 2:
        arm, baseline = found.scores
        yield from _of_seeds(baseline, [arm, *found.beside], found.decisive, level)


def _of_seeds(
    baseline: Sequence[float], arms: Sequence[Sequence[float]], decisive: object, level: float
) -> Iterator[Sign]:
    if not isinstance(decisive, Moderated) or (found := shared(baseline, arms)) is None or not found.is_shown:
        return
    if found.correlation < 0:
        yield Sign(kind="opposed", figure=found.correlation)
    elif _pairs_are_narrower(found.correlation, decisive, level):
        yield Sign(kind="together", figure=found.correlation)


def _pairs_are_narrower(correlation: float, decisive: Moderated, level: float) -> bool:
    """Return whether the paired test's interval is narrower on average where runs with one seed correlate so."""
    paired, moderated = (student.quantile((1 + level) / 2, df) for df in (decisive.n - 1, decisive.df))
    return bool(paired * (1 - correlation) ** 0.5 < moderated)
