"""Main effects and interactions of a factorial design, each with the figures that decide or would decide a claim."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from ablab.judge.differences import first_of, of_claim
from ablab.judge.estimates import by_both
from ablab.judge.evidence import evidence, off_scale
from ablab.judge.lines import ClaimLine, EffectLine
from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.anova import Effect, effects
from ablab.statistics.interval import NotTestable
from ablab.statistics.student import Floats
from ablab.study.claims import Settled
from ablab.study.design import name_of
from ablab.text import have

Cells = Mapping[tuple[str, ...], ArmRuns]
"""The arms of a design by their levels, in the order of its factors."""


def effect_lines(selection: SelectedArms, measure: Measure, claims: Sequence[ClaimLine] = ()) -> list[EffectLine]:
    """Return the effects of a factorial design, over the seeds that all cells have.

    An effect that is claimed has the figures of its claim; another one those at 95 % of the method that would decide.

    Empty for a design without two factors of two levels. Raises NotTestable where cells diverged or share too few
    seeds. An effect between cells that cannot be compared says why, and has no figures.
    """
    factors = selection.factors
    if len(factors) < 2 or any(len(levels) < 2 for levels in factors.values()):
        return []
    cells = {
        levels: selection.arm(name_of(dict(zip(factors, levels, strict=True)))) for levels in product(*factors.values())
    }
    factors, cells = _from_baseline(factors, cells, selection.arm(selection.baseline))
    if missing := [levels for levels, cell in cells.items() if cell is None]:
        are = "is no arm" if len(missing) == 1 else "are no arms"
        raise NotTestable(f"{len(missing)} of {len(cells)} cells of the design {are} of this report")
    if len({cell.evaluated for cell in cells.values() if cell is not None}) < len(cells):
        raise NotTestable("some levels of one factor have no effect under others, so that cells share their runs")
    whole = {levels: cell for levels, cell in cells.items() if cell is not None and not cell.diverged}
    seeds = sorted(set.intersection(*({run.seed for run in cell.finished} for cell in whole.values()))) if whole else []
    if len(whole) < len(cells):
        diverged = len(cells) - len(whole)
        raise NotTestable(f"{diverged} of {len(cells)} cells of the design {have(diverged)} diverged runs")
    if len(seeds) < 2:
        raise NotTestable("its cells have not 2 finished seeds in common")
    runs = [{run.seed: run for run in cell.finished} for cell in whole.values()]
    scores = [[measure.values([of_cell[seed]])[0] for seed in seeds] for of_cell in runs]
    sizes = [len(levels) for levels in factors.values()]
    found = effects(np.array(scores).reshape(*sizes, len(seeds)), factors)
    # An effect is linear in the scores: of a design in which one cell has 1 and the others 0, it is that cell's weight.
    weights = [one.differences for one in effects(np.eye(len(whole)).reshape(*sizes, len(whole)), factors)]
    plain = [_line(effect, whole, list(factors), measure, selection.within) for effect in found]

    def estimated(line: EffectLine, effect: Effect, weight: Floats) -> EffectLine:
        own = [(cell, float(one)) for cell, one in zip(whole.values(), weight, strict=True) if one]
        arms, differences = [cell for cell, _ in own], list(effect.differences)
        try:
            both = by_both(selection, arms, [one for _, one in own], measure, differences)
        except NotTestable as reason:
            return line.model_copy(update={"refused": str(reason)})
        figures = {"difference": float(np.mean(differences)), **both.figures}
        weighed = {cell.name: one for cell, one in own}
        return _decided(line.model_copy(update=figures), effect, weighed, claims, selection)

    every = zip(plain, found, weights, strict=True)
    return [line if line.refused else estimated(line, effect, weight) for line, effect, weight in every]


def _from_baseline(
    factors: Mapping[str, Sequence[str]], cells: Mapping[tuple[str, ...], ArmRuns | None], baseline: ArmRuns | None
) -> tuple[dict[str, list[str]], dict[tuple[str, ...], ArmRuns | None]]:
    """Put the baseline's level of each factor first: an effect is told against it, as its claim is."""
    usual = next(
        (levels for levels, cell in cells.items() if cell is baseline), tuple(each[0] for each in factors.values())
    )
    ordered = {
        factor: [first, *(level for level in levels if level != first)]
        for (factor, levels), first in zip(factors.items(), usual, strict=True)
    }
    return ordered, {levels: cells[levels] for levels in product(*ordered.values())}


def _decided(
    line: EffectLine,
    effect: Effect,
    weighed: Mapping[str, float],
    claims: Sequence[ClaimLine],
    selection: SelectedArms,
) -> EffectLine:
    """Return the line with the figures of the claim that compares the same over the same seeds; as it is without one.

    `weighed`: the weight of each arm in the effect.
    """
    own = [
        place
        for place, (claim, settled) in enumerate(zip(claims, selection.claims, strict=False))
        if claim.metric == selection.metric and claim.interval is not None
        if len(claim.per_seed) == len(effect.differences) and _weighs(selection, settled, weighed)
    ]
    if not own:
        return line
    place = first_of(own, claims)
    return of_claim(line, claims[place], place)


def _weighs(selection: SelectedArms, claim: Settled, weighed: Mapping[str, float]) -> bool:
    """Return whether a claim compares arms by these weights."""
    found: dict[str, float] = {}
    for name, weight in claim.weights.items():
        arm = selection.arm(name)
        found[name if arm is None else arm.name] = weight
    return found.keys() == weighed.keys() and all(abs(found[name] - weighed[name]) < 1e-9 for name in found)


def _line(effect: Effect, cells: Cells, factors: Sequence[str], measure: Measure, within: str | None) -> EffectLine:
    """Return the line of an effect without its figures, or with the reason why there are none."""
    line = EffectLine(
        what=" x ".join(
            f"{factor}: {level} instead of {usual}"
            for factor, (level, usual) in zip(effect.factors, effect.levels, strict=True)
        ),
        kind="main effect" if len(effect.factors) == 1 else "interaction",
        n=len(effect.differences),
    )
    if effect.factors == (within,):
        return line.model_copy(
            update={"refused": f"levels of {within}, as of within, are not compared with each other"}
        )
    refusals = [
        next(_refused(_steps(cells, effect, factors.index(factor)), measure), None) for factor in effect.factors
    ]
    # An interaction compares an effect under two levels of another factor, and may be read either way round: cells
    # that share a test set along one of its factors are enough.
    refused = refusals[0] if all(refusals) else _off_scale(effect, cells, factors, measure)
    return line.model_copy(update={"refused": refused})


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
