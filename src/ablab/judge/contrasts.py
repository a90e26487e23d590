"""Main effects, interactions and other contrasts: the evidence for claims about several arms."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

import numpy as np

from ablab.judge.drift import check_ran_together
from ablab.judge.evidence import Evidence, check_scale, evidence
from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.interval import NotTestable
from ablab.statistics.paired import without_rounding
from ablab.statistics.verdict import Failures
from ablab.study.claims import ContrastTerm, Settled
from ablab.text import have, how_many


def arms_of(selection: SelectedArms, claim: Settled) -> list[ArmRuns]:
    """Return the arms that a claim compares, in the order of its weights. Raises NotTestable where one is gone."""
    found = {name: selection.arm(name) for name in claim.weights}
    gone = [name for name, arm in found.items() if arm is None]
    if gone:
        raise NotTestable(f"{', '.join(gone)} {'is no arm' if len(gone) == 1 else 'are no arms'} of the study any more")
    return [arm for arm in found.values() if arm is not None]


def evidence_of(selection: SelectedArms, claim: Settled, measure: Measure) -> Evidence:
    """Return the evidence for any claim: for one about several arms, differences under each seed that all arms have.

    Each of the differences that it weighs passes the checks of a comparison of two arms. Differences that are weighed
    against each other are all in one measure. Shares of failures have no mean over arms. What so much compute gives
    asks for no convergence.
    """
    # By the names in the claim: an arm that is united with another since has a longer one.
    arms = dict(zip(claim.weights, arms_of(selection, claim), strict=True))
    try:
        check_ran_together(selection, list(arms.values()), measure)
    except NotTestable as reason:
        return reason
    if not claim.parts and _measured(arms[claim.arm]) == _measured(arms[claim.baseline]):
        return NotTestable(f"{claim.arm} and {claim.baseline} are the same runs")
    if not claim.parts:
        return evidence(arms[claim.arm], arms[claim.baseline], measure, claim.margin)
    if any(part.is_of_length and part.weight < -1 for part in claim.parts):  # of claims registered until November 2026
        return NotTestable("the baseline was trained at half and at twice its length, and says nothing of others")
    refusals = [next(_refusals(parts, arms, measure, claim.margin), None) for parts in readings(claim.parts)]
    if None not in refusals:
        return NotTestable(refusals[0])
    try:
        if any(part.weight < 0 for part in claim.parts):
            check_scale(arms.values(), measure)
        scores = shared_scores(list(arms.values()), measure)
    except NotTestable as reason:
        return reason
    return list(without_rounding(np.array(list(claim.weights.values())) @ np.array(scores), scores))


def _measured(arm: ArmRuns) -> list[object]:
    """Return the runs of an arm, with what was measured of each: arms may differ by that alone, as by pruning."""
    return [
        (
            run.folder.path,
            run.evaluation and run.evaluation.evaluation_id,
            *(curve and curve.curve_id for curve in (run.curve, run.head_curve)),
        )
        for run in arm.runs
    ]


def shared_scores(arms: Sequence[ArmRuns], measure: Measure) -> list[list[float]]:
    """Return the scores of each arm under the seeds that have finished in all, in order of the seeds.

    Raises NotTestable where there are no such seeds, or a run has no score.
    """
    by_seed = [{run.seed: measure.value(run) for run in arm.finished} for arm in arms]
    seeds = sorted(set.intersection(*map(set, by_seed)))
    if not seeds:
        raise NotTestable(f"no seed has finished in all of {len(arms)} arms")
    found = []
    for arm, scores in zip(arms, by_seed, strict=True):
        values = [value for seed in seeds if (value := scores[seed]) is not None]
        if len(values) < len(seeds):
            lack = len(seeds) - len(values)
            raise NotTestable(f"{how_many(lack, 'run')} of {arm.name} {have(lack)} no {measure.title}")
        found.append(values)
    return found


def sharing(runs: Sequence[Collection[Hashable]]) -> list[list[int]]:
    """Return the places of arms in groups that share runs, or whatever else tells them: runs of each arm."""
    first: dict[Hashable, int] = {}
    groups = [[place] for place in range(len(runs))]
    for place, own in enumerate(runs):
        for one in own:
            group = groups[first.setdefault(one, place)]
            if group is not groups[place]:
                group += groups[place]
                for other in groups[place]:
                    groups[other] = group
    return sorted(sorted(group) for place, group in enumerate(groups) if group[0] == place)


def independent(
    arms: Sequence[ArmRuns], weights: Sequence[float], scores: Sequence[Sequence[float]]
) -> tuple[list[float], list[list[float]]]:
    """Return weights and scores of arms whose runs are their own. Those that share runs, as arms that differ by pruning
    or by decoding alone do, are one arm, whose score is the weighted mean: as several they would pass for other runs.
    So are those of one sign whose scores are equal under each seed, as a factor without any effect makes them.

    One whose weights and scores cancel is left out, and so all may be. Where the weights alone do, what is left has
    another noise than a run, and the arms stay as they are: their difference then seems less certain than it is.
    """
    found: list[tuple[float, list[float]]] = []
    told = zip(arms, weights, scores, strict=True)
    for places in sharing([{*arm.folders, (weight > 0, *values)} for arm, weight, values in told]):
        own, whole = np.array([weights[place] for place in places]), np.array([scores[place] for place in places])
        summed, total = without_rounding(own @ whole, whole), float(own.sum())
        if abs(total) > ROUNDING:
            found.append((total, whole[0].tolist() if len(places) == 1 else (summed / total).tolist()))
        elif summed.any():
            found += [(weights[place], list(scores[place])) for place in places]
    return [weight for weight, _ in found], [values for _, values in found]


ROUNDING = 1e-9
"""Of the sum of weights such as 1/3."""


def readings(parts: Sequence[ContrastTerm]) -> Iterator[list[ContrastTerm]]:
    """Yield the ways to write a contrast as differences between arms.

    An interaction, (d - c) - (b - a), is also (d - b) - (c - a): cells that can be compared along one of its factors
    are enough. Languages cannot be compared with each other, the effect of a norm under them can.
    """
    yield list(parts)
    plus, minus = ([part for part in parts if sign * part.weight > 0] for sign in (1, -1))
    if minus and not any(part.is_of_length for part in parts):
        pairs = list(zip(plus, minus, strict=True))
        yield [
            *(ContrastTerm(arm=one.arm, baseline=other.arm, weight=one.weight) for one, other in pairs),
            *(ContrastTerm(arm=one.baseline, baseline=other.baseline, weight=other.weight) for one, other in pairs),
        ]


def _refusals(
    parts: Sequence[ContrastTerm], arms: Mapping[str, ArmRuns], measure: Measure, margin: float
) -> Iterator[str]:
    for part in parts:
        one, other = arms[part.arm], arms[part.baseline]
        found = evidence(one, other, measure, None if part.is_of_length else margin)
        if isinstance(found, NotTestable):
            yield str(found)
        elif isinstance(found, Failures):
            yield f"runs of {part.arm} or {part.baseline} diverged, and a share of failures has no mean over arms"
