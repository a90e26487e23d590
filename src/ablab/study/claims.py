"""Claims in the complete form in which they are judged, validated before any run.

A claim compares two arms, or a mean of differences between arms, such as a main effect or an interaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from ablab.errors import UserError
from ablab.study.design import Arm, Chosen, name_of
from ablab.study.experiment import Declared, Expectation
from ablab.study.grid import Grid
from ablab.tasks.plan import Planned
from ablab.tasks.registry import keys_of_curves, task_of
from ablab.tasks.score import Recipe, alike, unlike


class ContrastTerm(Declared):
    """A difference between two arms, and its weight in a comparison of more than two.

    `is_of_length`: of what so much compute gives, so that no arm need have converged.
    """

    arm: str
    baseline: str
    weight: float
    is_of_length: bool = False


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
    if grid.within in against:
        raise UserError(
            f"claims.baseline={claim.baseline}: it has a level of {grid.within}, as of within, and arm={name} has "
            "none; allowed: both with one, or neither"
        )
    pairs = []
    for level in grid.levels_of(grid.within):
        here = {grid.within: level}
        pairs.append((_cell({**levels, **here}, grid), _cell({**against, **here}, grid)))
    yield from (Comparison(arm.name, baseline.name) for arm, baseline in pairs)
    other = {**{factor: grid.usual[factor] for factor in levels}, **against}
    yield _mean(f"{name_of(levels)}, mean over {grid.within}", name_of(other), pairs)


def _other(claim: Expectation, arm: Arm, grid: Grid) -> Arm:
    """Return the arm that a claim compares this one with; itself, where nothing of its level of `within` is before."""
    if claim.baseline is None:
        return grid.baseline_of(arm)
    alike = [one for one in grid.arms if grid.within is None or one.levels[grid.within] == arm.levels[grid.within]]
    if claim.baseline == "before" and all(one.name != "before" for one in grid.arms):
        return alike[max(0, alike.index(arm) - 1)]
    levels = None if grid.within is None else grid.levels_in(claim.baseline)
    if grid.within is not None and levels and grid.within not in levels:
        return _cell({**levels, grid.within: arm.levels[grid.within]}, grid)
    other = grid.find(claim.baseline, "claims.baseline")
    if other in alike:
        return other
    raise UserError(
        f"claims.baseline={claim.baseline}: {arm.name} has another level of {grid.within}; levels of {grid.within}, as "
        "of within, are not compared with each other"
    )


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
        raise UserError(
            f"claims: there is no arm {wanted}; allowed: arms that there are, of which a factorial design has all"
        )
    return found


def _mean(arm: str, baseline: str, pairs: Sequence[tuple[Arm, Arm]]) -> Comparison:
    parts = [ContrastTerm(arm=ours.name, baseline=theirs.name, weight=1 / len(pairs)) for ours, theirs in pairs]
    return Comparison(arm, baseline, parts)


EXPECTED = {"greater": "above", "less": "below", "equal": "level with", "not_worse": "not worse than"}
"""What a claim says of an arm and its baseline, in words."""


class Settled(Expectation):
    """A claim with its own baseline and metric, filled in from the study where the file omits them.

    `parts`: the differences that a comparison of more than two arms weighs. `arm` and `baseline` then say in words what
    is compared; else they are arms.
    """

    arm: str
    baseline: str
    metric: str
    parts: list[ContrastTerm] = Field(default_factory=list)

    @property
    def differences(self) -> list[ContrastTerm]:
        """The differences between arms that it weighs; of an arm and its baseline, that one."""
        return self.parts or [ContrastTerm(arm=self.arm, baseline=self.baseline, weight=1.0)]

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each arm in what is compared: 1 and -1 for an arm and its baseline."""
        found: dict[str, float] = {}
        for part in self.differences:
            for name, weight in ((part.arm, part.weight), (part.baseline, -part.weight)):
                found[name] = found.get(name, 0.0) + weight
        return found

    @property
    def is_of_compute(self) -> bool:
        """Whether it is about what so much compute gives, which asks for no convergence."""
        return bool(self.parts) and all(part.is_of_length for part in self.parts)

    @property
    def words(self) -> str:
        """The claim in a line."""
        margin = f", margin {self.margin:g}" if self.margin else ""
        secondary = ", secondary" if self.secondary else ""
        return f"{self.arm} {EXPECTED[self.expect]} {self.baseline} in {self.metric}{margin}{secondary}"

    def renamed(self, names: Mapping[str, str]) -> "Settled":
        """Return the claim about the same arms under other names."""
        parts = [
            part.model_copy(update={"arm": names[part.arm], "baseline": names[part.baseline]}) for part in self.parts
        ]
        sides = {} if parts else {"arm": names[self.arm], "baseline": names[self.baseline]}
        return self.model_copy(update={"parts": parts, **sides})

    def registered(self) -> dict[str, Any]:
        """Return its content as a registration holds it: what was added to claims later, only where it is said."""
        added = {"effect", "interaction", "secondary", "parts", "heads"}
        content = {key: value for key, value in self.model_dump(mode="json").items() if value or key not in added}
        for part in content.get("parts", ()):
            if not part["is_of_length"]:
                del part["is_of_length"]
        return content


def settled(given: Sequence[Expectation], grid: Grid, metric: str) -> list[Settled]:
    """Complete and validate the claims of a file; a change of the study's baseline or metric changes them too.

    Raises UserError now, before any run, for a typo, and for a claim that is true or false whatever the runs give.
    """
    claims: list[Settled] = []
    for one in given:
        own = one.model_dump(exclude={"arm", "baseline", "effect", "interaction"})
        for about in compared(one, grid):
            if one.arm is not None and about.parts and own["metric"] == "failures":
                continue  # a share of runs has no mean over arms
            sides = {"arm": about.arm, "baseline": about.baseline, "parts": about.parts}
            claim = settle({**own, **sides}, grid.baseline.name, metric)
            for refused in _refusals(claim):
                raise UserError(refused)
            if asked(claim) in map(asked, claims):
                raise UserError(f"claims.arm={claim.arm}: the same is claimed twice; allowed: each claim once")
            claims.append(claim)
    return claims


def _refusals(claim: Settled) -> Iterator[str]:
    if claim.arm == claim.baseline:
        yield f"claims.arm={claim.arm}: that is its baseline too; allowed: another arm"
    curves = keys_of_curves()
    read = curves.get(claim.metric, {})
    meanings = {key: meaning for keys in curves.values() for key, meaning in keys.items()}
    given = {key: value for key in meanings if (value := getattr(claim, key)) is not None}
    for key in given.keys() - read.keys():
        metrics = " or ".join(metric for metric, keys in curves.items() if key in keys)
        yield f"claims.{key}={given[key]}: {meanings[key]}, for claims with metric: {metrics} and no others"
    if read and len(given.keys() & read.keys()) != 1:
        wanted = " or ".join(f"{key}, {meaning}" for key, meaning in read.items())
        got = " and ".join(key for key in given if key in read) or "neither"
        yield f"claims.metric={claim.metric}: got {got}; allowed with one of {wanted}"
    if claim.metric == "failures" and claim.parts:
        yield f"claims.metric=failures: {claim.arm} is no arm; allowed for claims of an arm against another"
    if claim.metric == "failures" and claim.margin:
        yield f"claims.margin={claim.margin:g}: a share of failures has no margin; allowed with metric: a score"
    if claim.expect == "not_worse" and not claim.margin:
        missing = "a share of failures has no margin" if claim.metric == "failures" else "by how much? say a margin"
        yield f"claims.expect=not_worse: {missing}; allowed with metric: a score, and margin: above 0"


def check_scale(claim: Settled, recipes: Sequence[Recipe]) -> None:
    """Raise UserError where runs of these recipes, which a claim compares, have no measure in common in its metric."""
    scores = task_of(recipes[0]).scores
    if (reason := unlike(scores, claim.metric, recipes)) is not None:
        allowed = alike(scores, scores, recipes)
        raise UserError(f"claims.metric={claim.metric}: {claim.words}: {reason}; allowed: {allowed}")


def settle(claim: Mapping[str, Any], baseline: str, metric: str) -> Settled:
    """Fill in the baseline and metric of a claim. Raises ValueError where the result is no valid claim."""
    own = {key: value for key, value in claim.items() if value is not None}
    return Settled.model_validate({"baseline": baseline, "metric": metric, **own})


def asked(claim: Settled) -> Settled:
    """Return the claim without published results and source: they may be corrected later, and do not affect the
    verdict.
    """
    return claim.model_copy(update={"published": None, "source": None})


def check_measured(claim: Settled, planned: Planned) -> None:
    """Raise UserError unless the planned run measures what the claim is about."""
    if claim.metric in planned.task.of_curves:
        planned.task.check_measured(claim, planned)
