"""What the seeds of a study can tell about each of its claims, before they are trained."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ablab.fields import flatten
from ablab.judge.noise import Noise, known_noise
from ablab.statistics.paired import MINIMUM_SEEDS
from ablab.statistics.power import MOST_SEEDS, POWER, POWERS, Layout, detectable_difference, seeds_for
from ablab.statistics.proportions import compare_shares
from ablab.statistics.ranks import DIVERGED, FEWEST_RANKED, compare_ranks
from ablab.study.cells import compared_recipes
from ablab.study.claims import Settled
from ablab.study.study import Study
from ablab.tasks.score import unlike
from ablab.tasks.task import FAILURES

ALPHA = 0.05

BOUNDED = ("equal", "not_worse")
"""Expectations that a difference lies within the margin."""

POOR = 0.2
"""Chance below which such a claim is called hopeless."""


@dataclass(frozen=True)
class Prospect:
    """What can be expected of a claim, in words. `is_hopeless`: it can hardly be answered, whatever is true.

    `caveat`: what becomes of it should a run diverge; empty where that could still decide it.
    """

    claim: Settled
    words: str
    is_hopeless: bool = False
    caveat: str = ""


def prospects(study: Study) -> Iterator[Prospect]:
    """Yield a prospect for each claim: what its seeds would see, from the noise known so far."""
    noises = known_noise(study, {claim.metric for claim in study.claims} & set(study.task.scores))
    for claim in study.claims:
        if (reason := _off_scale(study, claim)) is not None:
            yield Prospect(claim, f"cannot be judged: {reason}", True)
            continue
        if _are_chosen_unlike(study, claim):
            words = f"cannot be judged: its arms select weights differently, and by {claim.metric} itself"
            yield Prospect(claim, words, True)
            continue
        found = _prospect(study, claim, noises.get(claim.metric))
        yield replace(found, words=found.words + _if_chosen(study, claim), caveat=_if_runs_diverge(study, claim))


def _prospect(study: Study, claim: Settled, noise: Noise | None) -> Prospect:
    seeds, level = len(study.seeds), _level(study, claim)
    if seeds < MINIMUM_SEEDS:
        return Prospect(claim, f"cannot be judged by {seeds} seeds; a claim needs at least {MINIMUM_SEEDS}", True)
    if claim.expect == "equal" and not claim.margin:
        return Prospect(claim, "can only be refuted; to be supported it needs a margin above 0", True)
    if claim.metric == "failures":
        p = compare_shares((seeds, seeds), (0, seeds)).p
        if p > level:
            words = f"cannot be shown by {seeds} seeds: even all failing against none has p = {p:.3f}, and it needs"
            return Prospect(claim, f"{words} {level:.3g}", True)
        return Prospect(claim, f"all failing against none would be seen (p = {p:.3f}; it needs {level:.3g})")
    if claim.metric not in study.task.scores:
        return Prospect(claim, "its noise is known only from the study itself")
    if noise is None:
        return Prospect(claim, "noise unknown: no arm has two finished runs, here or of like kind in the store")
    return _from_noise(study, claim, noise, level)


def _level(study: Study, claim: Settled) -> float:
    """Return the level at which the claim starts: an equal share of that of its family."""
    return ALPHA / sum(one.secondary == claim.secondary for one in study.claims)


def _methods(study: Study, claim: Settled) -> set[str | None]:
    """Return the methods by which the claim's metric chooses the weights that it scores; None: it does not."""
    cells = [cell for cell in study.cells if cell.arm in claim.weights]
    return {study.task.chosen_by(claim.metric, flatten(cell.planned.recipe)) for cell in cells}


def _are_chosen_unlike(study: Study, claim: Settled) -> bool:
    return len(_methods(study, claim)) > 1


def _off_scale(study: Study, claim: Settled) -> str | None:
    """Return why the arms of a claim have no measure in common in its metric; None if they have."""
    scores = study.task.scores
    reasons = (unlike(scores, claim.metric, recipes) for recipes in compared_recipes(claim, study.cells))
    return next((reason for reason in reasons if reason is not None), None)


def _if_chosen(study: Study, claim: Settled) -> str:
    if _methods(study, claim) <= {None}:
        return ""
    return f"; {claim.metric} also chooses the weights, the best of several validations: it is no estimate for new data"


def _if_runs_diverge(study: Study, claim: Settled) -> str:
    """Return what a claim about quality becomes where runs diverge, if its seeds could show nothing then."""
    seeds, level = len(study.seeds), _level(study, claim)
    if claim.metric in (FAILURES, *study.task.costs) or seeds < MINIMUM_SEEDS:
        return ""
    if claim.parts:
        return "should a run diverge, it cannot be tested"
    if seeds >= FEWEST_RANKED:
        p, way = compare_ranks([0.0] * seeds, [DIVERGED] * seeds).p, "all runs are ranked"
    else:
        p, way = compare_shares((0, seeds), (seeds, seeds)).p, "arms are compared by their shares of failures"
    if p <= level:
        return ""
    most = f"even all failing against none has p = {p:.3f}, and it needs {level:.3g}"
    more = f"; from {FEWEST_RANKED} seeds on, all runs are ranked" if seeds < FEWEST_RANKED else ""
    return f"should a run diverge, {way}, which cannot reach significance: {most}{more}"


def _from_noise(study: Study, claim: Settled, noise: Noise, level: float) -> Prospect:
    seeds, score = len(study.seeds), study.task.scores[claim.metric]
    layout = _layout(study, claim)
    error, df = layout.precision(noise.sd, seeds)
    shown = f"(a run's standard deviation is {noise.sd:.3g}, over {noise.runs} runs of {noise.origin})"
    if claim.expect in BOUNDED:
        chance = POWERS[claim.expect](claim.margin, error, df, level)
        is_hopeless = chance < POOR
        words = f"if nothing differs, {seeds} seeds support it with a chance of {100 * chance:.0f} % {shown}"
    else:
        seen = detectable_difference(error, df, POWER, level)
        words = f"{seeds} seeds see a difference of {seen:.3g} {score.unit} with 80 % power {shown}"
        is_hopeless = seen > score.absurd  # a claim that needs more is called hopeless
        chance = POWERS[claim.expect](claim.margin, error, df, level) if claim.margin else 1.0
    if not claim.margin or chance >= POWER:
        return Prospect(claim, words, is_hopeless)
    needed = seeds_for(claim.expect, claim.margin, noise.sd, layout, level)
    cost = f"more than {MOST_SEEDS} seeds" if needed is None else f"{needed} seeds"
    aim = "a chance of 80 %" if claim.expect in BOUNDED else f"its margin of {claim.margin:g}"
    return Prospect(claim, f"{words}; {aim} takes {cost}", is_hopeless)


def _layout(study: Study, claim: Settled) -> Layout:
    weights = list(claim.weights.values())
    borrows = study.experiment is None or study.experiment.decisive_error != "paired"
    return Layout(weights, max(0, len(study.arm_of_rows) - len(weights)) if borrows else None)
