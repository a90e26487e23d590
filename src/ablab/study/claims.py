"""Claims in the complete form in which they are judged, validated before any run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from ablab.errors import UserError
from ablab.study.contrasts import ContrastTerm, compared
from ablab.study.experiment import Expectation
from ablab.study.grid import Grid
from ablab.tasks.plan import Planned
from ablab.tasks.registry import keys_of_curves, task_of
from ablab.tasks.score import Recipe, alike, unlike

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
        return {key: value for key, value in self.model_dump(mode="json").items() if value or key not in added}


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
    for metric, keys in keys_of_curves().items():
        given = {key: value for key in keys if (value := getattr(claim, key)) is not None}
        if claim.metric != metric:
            for key, value in given.items():
                yield f"claims.{key}={value}: {keys[key]}, for claims with metric: {metric} and no others"
        elif len(given) != 1:
            wanted = " or ".join(f"{key}, {meaning}" for key, meaning in keys.items())
            yield f"claims.metric={metric}: got {' and '.join(given) or 'neither'}; allowed with one of {wanted}"
    if claim.metric == "failures" and claim.parts:
        yield f"claims.metric=failures: {claim.arm} is no arm; allowed for claims of an arm against another"
    if claim.expect == "not_worse" and (claim.metric == "failures" or not claim.margin):
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
