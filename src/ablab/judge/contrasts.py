"""Main effects, interactions and other contrasts: the evidence for claims about several arms, and all of a design."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from ablab.judge.document import EffectLine, Span
from ablab.judge.evidence import Evidence, check_scale, evidence, off_scale
from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.factorial import Effect, effects
from ablab.statistics.interval import NotTestable
from ablab.statistics.paired import without_rounding
from ablab.statistics.verdict import Failures
from ablab.study.claims import Settled
from ablab.study.contrasts import ContrastTerm
from ablab.study.design import name_of
from ablab.text import have, how_many


def arms_of(selection: SelectedArms, claim: Settled) -> list[ArmRuns]:
    """Return the arms that a claim compares, in the order of its weights. Raises NotTestable where one is gone."""
    found = {name: selection.arm(name) for name in claim.weights}
    gone = [name for name, arm in found.items() if arm is None]
    if gone:
        raise NotTestable(f"{', '.join(gone)} is no arm of the study any more")
    return [arm for arm in found.values() if arm is not None]


def evidence_of(selection: SelectedArms, claim: Settled, measure: Measure) -> Evidence:
    """Return the evidence for any claim: for one about several arms, differences under each seed that all arms have.

    Each of the differences that it weighs passes the checks of a comparison of two arms. Differences that are weighed
    against each other are all in one measure. Shares of failures have no mean over arms.
    """
    # By the names in the claim: an arm that is united with another since has a longer one.
    arms = dict(zip(claim.weights, arms_of(selection, claim), strict=True))
    if not claim.parts:
        return evidence(arms[claim.arm], arms[claim.baseline], measure, claim.margin)
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


def readings(parts: Sequence[ContrastTerm]) -> Iterator[list[ContrastTerm]]:
    """Yield the ways to write a contrast as differences between arms.

    An interaction, (d - c) - (b - a), is also (d - b) - (c - a): cells that can be compared along one of its factors
    are enough. Languages cannot be compared with each other, the effect of a norm under them can.
    """
    yield list(parts)
    plus, minus = ([part for part in parts if sign * part.weight > 0] for sign in (1, -1))
    if minus:
        pairs = list(zip(plus, minus, strict=True))
        yield [
            *(ContrastTerm(arm=one.arm, baseline=other.arm, weight=one.weight) for one, other in pairs),
            *(ContrastTerm(arm=one.baseline, baseline=other.baseline, weight=other.weight) for one, other in pairs),
        ]


def _refusals(
    parts: Sequence[ContrastTerm], arms: Mapping[str, ArmRuns], measure: Measure, margin: float
) -> Iterator[str]:
    for part in parts:
        found = evidence(arms[part.arm], arms[part.baseline], measure, margin)
        if isinstance(found, NotTestable):
            yield str(found)
        elif isinstance(found, Failures):
            yield f"runs of {part.arm} or {part.baseline} diverged, and a share of failures has no mean over arms"


Cells = Mapping[tuple[str, ...], ArmRuns]
"""The arms of a design by their levels, in the order of its factors."""


def effect_lines(selection: SelectedArms, measure: Measure) -> list[EffectLine]:
    """Return the effects of a factorial design, over the seeds that all cells have.

    Empty for a design without two factors of two levels. Raises NotTestable where cells diverged or share too few
    seeds. An effect between cells that cannot be compared says why, and has no figures.
    """
    factors = selection.factors
    if len(factors) < 2 or any(len(levels) < 2 for levels in factors.values()):
        return []
    cells = {
        levels: selection.arm(name_of(dict(zip(factors, levels, strict=True)))) for levels in product(*factors.values())
    }
    if missing := [levels for levels, cell in cells.items() if cell is None]:
        raise NotTestable(f"{len(missing)} of {len(cells)} cells of the design are no arms of this report")
    if len({cell.name for cell in cells.values() if cell is not None}) < len(cells):
        raise NotTestable("some levels of one factor have no effect under others, so that cells share their runs")
    whole = {levels: cell for levels, cell in cells.items() if cell is not None and not cell.diverged}
    seeds = sorted(set.intersection(*({run.seed for run in cell.finished} for cell in whole.values()))) if whole else []
    if len(whole) < len(cells):
        raise NotTestable(f"{len(cells) - len(whole)} of {len(cells)} cells of the design have diverged runs")
    if len(seeds) < 2:
        raise NotTestable("its cells have not 2 finished seeds in common")
    runs = [{run.seed: run for run in cell.finished} for cell in whole.values()]
    scores = [[measure.values([of_cell[seed]])[0] for seed in seeds] for of_cell in runs]
    shaped = np.array(scores).reshape(*(len(levels) for levels in factors.values()), len(seeds))
    return [_line(effect, whole, list(factors), measure) for effect in effects(shaped, factors)]


def _line(effect: Effect, cells: Cells, factors: Sequence[str], measure: Measure) -> EffectLine:
    line = EffectLine(
        what=" x ".join(
            f"{factor}: {level} instead of {usual}"
            for factor, (level, usual) in zip(effect.factors, effect.levels, strict=True)
        ),
        kind="main effect" if len(effect.factors) == 1 else "interaction",
        n=len(effect.differences),
    )
    refusals = [
        next(_refused(_steps(cells, effect, factors.index(factor)), measure), None) for factor in effect.factors
    ]
    # An interaction compares an effect under two levels of another factor, and may be read either way round: cells
    # that share a test set along one of its factors are enough.
    refused = refusals[0] if all(refusals) else _off_scale(effect, cells, factors, measure)
    if refused is not None:
        return line.model_copy(update={"refused": refused})
    try:
        paired = effect.paired
    except NotTestable as reason:
        return line.model_copy(update={"refused": str(reason)})
    figures = {"difference": paired.difference, "interval": Span.of(paired.interval), "p": paired.p}
    return line.model_copy(update=figures)


def _off_scale(effect: Effect, cells: Cells, factors: Sequence[str], measure: Measure) -> str | None:
    """Return why the effects that an interaction compares are not in one measure; None if they are."""
    if len(effect.factors) == 1:
        return None
    steps = [step for factor in effect.factors for step in _steps(cells, effect, factors.index(factor))]
    return off_scale((cell for step in steps for cell in step), measure)


def _steps(cells: Cells, effect: Effect, axis: int) -> Iterator[tuple[ArmRuns, ArmRuns]]:
    """Yield the pairs of cells that differ in this factor alone and that the effect compares along it."""
    level, usual = next(pair for factor, pair in zip(effect.axes, effect.levels, strict=True) if factor == axis)
    others = {other: set(pair) for other, pair in zip(effect.axes, effect.levels, strict=True) if other != axis}
    for levels, cell in cells.items():
        if levels[axis] == level and all(levels[other] in allowed for other, allowed in others.items()):
            matching = (*levels[:axis], usual, *levels[axis + 1 :])
            yield cell, cells[matching]


def _refused(steps: Iterator[tuple[ArmRuns, ArmRuns]], measure: Measure) -> Iterator[str]:
    for arm, baseline in steps:
        found = evidence(arm, baseline, measure, margin=0.0)
        if isinstance(found, NotTestable):
            yield str(found)
