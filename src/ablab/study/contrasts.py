"""What a claim compares: two arms, or a mean of differences between arms, such as a main effect or an interaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ablab.errors import UserError
from ablab.study.design import Arm, Chosen, name_of
from ablab.study.experiment import Declared, Expectation
from ablab.study.grid import Grid


class ContrastTerm(Declared):
    """A difference between two arms, and its weight in a comparison of more than two."""

    arm: str
    baseline: str
    weight: float


@dataclass(frozen=True)
class Comparison:
    """The two sides of a claim, in words. `parts`: the differences that it weighs; empty where both sides are arms."""

    arm: str
    baseline: str
    parts: list[ContrastTerm] = field(default_factory=list)


def compared(claim: Expectation, grid: Grid) -> Iterator[Comparison]:
    """Yield the comparisons that a claim of the file stands for. Raises UserError where it names none."""
    forms = {"arm": claim.arm, "effect": claim.effect, "interaction": claim.interaction}
    given = [form for form, value in forms.items() if value is not None]
    if len(given) != 1:
        raise UserError(f"claims: {' and '.join(given) or 'nothing'} given; allowed: one of {', '.join(forms)}")
    if claim.interaction is not None:
        yield _interaction(claim, claim.interaction, grid)
    elif claim.effect is not None:
        yield _main_effect(claim, claim.effect, grid)
    elif claim.arm == "each":
        for arm in grid.arms:
            if arm is not (other := _other(claim, arm, grid)):
                yield Comparison(arm.name, other.name)
    else:
        yield from _pairs(claim, claim.arm or "", grid)


def _pairs(claim: Expectation, name: str, grid: Grid) -> Iterator[Comparison]:
    """Yield an arm and its baseline: in each level of the factor `within`, and on average, if the name has no level."""
    levels = None if grid.within is None else grid.levels_in(name)
    if grid.within is None or levels is None or grid.within in levels:
        arm = grid.find(name, "claims.arm")
        yield Comparison(arm.name, _other(claim, arm, grid).name)
        return
    against = grid.levels_in(claim.baseline or "")
    if against is None:
        raise UserError(f"claims.baseline={claim.baseline}: allowed beside arm={name}: levels of the other factors")
    pairs = []
    for level in grid.levels_of(grid.within):
        here = {grid.within: level}
        pairs.append((_cell({**levels, **here}, grid), _cell({**against, **here}, grid)))
    yield from (Comparison(arm.name, baseline.name) for arm, baseline in pairs)
    other = {**{factor: grid.usual[factor] for factor in levels}, **against}
    yield _mean(f"{name_of(levels)}, mean over {grid.within}", name_of(other), pairs)


def _other(claim: Expectation, arm: Arm, grid: Grid) -> Arm:
    """Return the arm that a claim compares this one with."""
    names = [one.name for one in grid.arms]
    if claim.baseline == "before" and "before" not in names:
        return grid.arms[max(0, names.index(arm.name) - 1)]
    return grid.baseline_of(arm) if claim.baseline is None else grid.find(claim.baseline, "claims.baseline")


def _main_effect(claim: Expectation, name: str, grid: Grid) -> Comparison:
    """Return the mean difference between two levels of a factor, over all levels of the others."""
    factor, level = grid.step(name, "claims.effect")
    usual = grid.usual[factor]
    if claim.baseline is not None:
        there, usual = grid.step(claim.baseline, "claims.baseline")
        if there != factor:
            raise UserError(f"claims.baseline={claim.baseline}: allowed beside effect={name}: a level of {factor}")
    if level == usual:
        raise UserError(f"claims.effect={name}: that is its baseline too; allowed: another level of {factor}")
    if factor == grid.within:
        raise UserError(f"claims.effect={name}: levels of {factor}, as of within, are not compared with each other")
    others = grid.others(factor)
    if not others:
        raise UserError(f"claims.effect={name}: {factor} is the only factor; allowed: arm={factor}={level}")
    pairs = [
        (_cell({**rest, factor: level}, grid), _cell({**rest, factor: usual}, grid))
        for rest in grid.combinations(others)
    ]
    return _mean(f"{factor}={level}, mean over {', '.join(others)}", f"{factor}={usual}", pairs)


def _interaction(claim: Expectation, names: Sequence[str], grid: Grid) -> Comparison:
    """Return how much the effect of one factor is greater under a level of another than under its usual level.

    Its mean, where there are more factors. It is 0 where effects add up.
    """
    if claim.baseline is not None:
        raise UserError(f"claims.baseline={claim.baseline}: an interaction has none; allowed with arm and effect")
    steps = [grid.step(name, "claims.interaction") for name in names]
    if len(steps) != 2 or steps[0][0] == steps[1][0]:
        raise UserError(f"claims.interaction=[{', '.join(names)}]: allowed: levels of two factors, or two factors")
    if usual := [f"{factor}={level}" for factor, level in steps if level == grid.usual[factor]]:
        raise UserError(f"claims.interaction=[{', '.join(names)}]: {usual[0]} is the baseline's; allowed: other levels")
    (one, level), (other, level_of_other) = steps
    rest = list(grid.combinations(grid.others(one, other)))
    parts = [
        ContrastTerm(
            arm=_cell({**others, one: level, other: there}, grid).name,
            baseline=_cell({**others, one: grid.usual[one], other: there}, grid).name,
            weight=sign / len(rest),
        )
        for there, sign in ((level_of_other, 1.0), (grid.usual[other], -1.0))
        for others in rest
    ]
    return Comparison(f"{one}={level} with {other}={level_of_other}", "the sum of their effects", parts)


def _cell(levels: Chosen, grid: Grid) -> Arm:
    found = grid.cell(levels)
    if found is None:
        wanted = name_of({**grid.usual, **levels})
        raise UserError(f"claims: the design has no arm {wanted}; allowed with design: factorial, which has all")
    return found


def _mean(arm: str, baseline: str, pairs: Sequence[tuple[Arm, Arm]]) -> Comparison:
    parts = [ContrastTerm(arm=ours.name, baseline=theirs.name, weight=1 / len(pairs)) for ours, theirs in pairs]
    return Comparison(arm, baseline, parts)
