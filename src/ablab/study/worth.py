"""What changes are worth in compute: the baseline at half and at twice its length, and claims about factors of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ablab.config import compose_arm
from ablab.errors import UserError
from ablab.fields import flatten
from ablab.statistics.worth import LONGEST, SHORTEST, contrast
from ablab.study.claims import Comparison, ContrastTerm, Settled, asked, compared, settle, settled
from ablab.study.design import Arm
from ablab.study.experiment import WORTH, Claim, Experiment
from ablab.study.grid import Grid
from ablab.tasks.own_metrics import own_metrics
from ablab.tasks.registry import task_in_words
from ablab.tasks.task import Task


@dataclass(frozen=True)
class Lengths:
    """The arms that are the baseline at other lengths."""

    task: Task
    baseline: str
    half: Arm
    double: Arm

    @property
    def key(self) -> str:
        """What decides the length, by the name that users give it."""
        return self.half.name.partition("=")[0]

    @property
    def arms(self) -> list[Arm]:
        return [self.half, self.double]


def lengths_of(experiment: Experiment, arms: Sequence[Arm], baseline: str, common: Sequence[str]) -> Lengths | None:
    """Return the baseline at half and at twice its length, if the experiment asks what its arms are worth.

    Raises UserError where the task knows no length, or the design leaves open which baseline is meant.
    """
    if not experiment.worth:
        asking = [claim for claim in experiment.claims if claim.metric == WORTH]
        if asking:
            raise UserError("claims.metric=worth: the baseline has one length; allowed with worth: true")
        return None
    for name in ("tune", "within", "search"):
        if getattr(experiment, name) is not None:
            raise UserError(f"worth: not beside {name}; allowed: a study without it")
    task, named = task_in_words(common), None if experiment.worth is True else experiment.worth
    key = task.length if named is None else named
    if key is None:
        raise UserError(
            f"worth=true: runs of task={task.name} have no length of their own; allowed: worth: <the name of the value "
            "that decides how long a run is>"
        )
    if any(word.partition("=")[0] == key for arm in arms for word in arm.words):
        raise UserError(f"worth: {key} is what the arms differ by; allowed: arms of one length")
    first = next(arm for arm in arms if arm.name == baseline)
    settings = flatten(compose_arm([*common, *first.words, "seed=1"]).config.model_dump(serialize_as_any=True))
    if settings.get("smoke"):  # which cuts all lengths to one
        return None
    usual = settings.get(key)
    if key == task.length and (other := task.ends_by(settings)) is not None:
        raise UserError(f"worth: {other} may end training before {key}; allowed: runs that {key} alone ends")
    for arm in (each for each in arms if each is not first):
        own = flatten(compose_arm([*common, *arm.words, "seed=1"]).config.model_dump(serialize_as_any=True))
        if (length := own.get(key)) != usual:
            raise UserError(
                f"worth: {arm.name} has {key}={length}, and {baseline} {usual}; allowed: arms of one length"
            )
        if key == task.length and (ending := task.ends_by(own)) is not None:
            raise UserError(f"worth: {ending} of {arm.name} may end training before {key}; allowed: {key} alone")
    if isinstance(usual, bool) or not isinstance(usual, int | float):
        raise UserError(f"worth={key}: no number of the baseline; allowed: a setting such as {task.length or 'steps'}")
    if usual <= 0 or (isinstance(usual, int) and usual % 2):
        raise UserError(f"worth: {key}={usual} has no half; allowed: an even number above 0")
    half, double = (usual // 2 if isinstance(usual, int) else usual / 2), 2 * usual
    shown = task.called(key) or key
    made = [Arm(f"{shown}={value}", (*first.words, f"{key}={value}")) for value in (half, double)]
    return Lengths(task, baseline, *made)


def claims_of(experiment: Experiment, grid: Grid, lengths: Lengths | None) -> list[Settled]:
    """Return the claims of a file as they are judged, those about factors of compute last. Raises as `settled`."""
    asking = [claim for claim in experiment.claims if claim.metric == WORTH]
    others = [claim for claim in experiment.claims if claim.metric != WORTH]
    found = settled(others, grid, experiment.metric)
    if lengths is None:
        return found
    for claim in asking:
        for about in compared(claim, grid):
            one = _of_factor(claim, about, experiment, lengths)
            if asked(one) in map(asked, found):
                raise UserError(f"claims.arm={one.arm}: the same is claimed twice; allowed: each claim once")
            found.append(one)
    return found


def _of_factor(claim: Claim, about: Comparison, experiment: Experiment, lengths: Lengths) -> Settled:
    """Return a claim about a factor, its margin: on the arm beside the baseline of so much compute, in the metric."""
    factor, baseline = claim.margin or 1.0, lengths.baseline
    if not SHORTEST <= factor <= LONGEST:
        lengths_of = f"{SHORTEST:g} to {LONGEST:g}, the lengths that the baseline is trained at"
        raise UserError(f"claims.margin={factor:g}: allowed with metric: worth: {lengths_of}")
    if claim.expect not in ("greater", "less"):
        raise UserError(f"claims.expect={claim.expect}: allowed with metric: worth: greater, less")
    if about.parts or about.baseline != baseline:
        raise UserError(f"claims: metric=worth compares an arm with {baseline} of other lengths; allowed: arm: <one>")
    if about.arm == baseline:
        raise UserError(f"claims.arm={about.arm}: that is its baseline too; allowed: another arm")
    metric = experiment.metric
    own_metric, score = own_metrics().get(metric), lengths.task.measured.get(metric)
    is_higher = score.higher_is_better if score is not None else own_metric is None or own_metric.better == "higher"
    expect = claim.expect if is_higher else {"greater": "less", "less": "greater"}[claim.expect]
    of_arm, _, of_half, of_double = contrast(factor)
    weighed = {about.arm: of_arm, lengths.half.name: of_half, lengths.double.name: of_double}
    own = claim.model_dump(exclude={"arm", "baseline", "effect", "interaction", "margin", "expect", "metric"})
    sides: dict[str, Any] = {
        "arm": about.arm,
        "baseline": f"{baseline} with {_compute(factor)}",
        "parts": [
            ContrastTerm(arm=name, baseline=baseline, weight=weight, is_of_length=True)
            for name, weight in weighed.items()
            if weight
        ],
    }
    return settle({**own, **sides, "expect": expect}, baseline, metric)


def _compute(factor: float) -> str:
    if factor == 1:
        return "the same compute"
    return f"{factor:g} times its compute"
