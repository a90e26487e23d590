"""What the seeds of a study can tell about each of its claims, before they are trained."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ablab.fields import flatten
from ablab.statistics.moderated import prior
from ablab.statistics.paired import MINIMUM_SEEDS
from ablab.statistics.power import POWER, detectable_difference, equivalence_power, one_sided_power, two_sided_power
from ablab.statistics.proportions import compare_shares
from ablab.statistics.ranks import DIVERGED, FEWEST_RANKED, compare_ranks
from ablab.store.scores import COSTS, SCORES
from ablab.study.chosen import chosen_by
from ablab.study.claims import Settled
from ablab.study.noise import Noise, known_noise
from ablab.study.study import Study

ALPHA = 0.05
MOST_SEEDS = 100

BOUNDED = ("equal", "not_worse")
"""Expectations that a difference lies within the margin."""

POOR = 0.2
"""Chance below which such a claim is called hopeless."""

ABSURD: Mapping[str, float] = {"BLEU": 10.0, "chrF": 10.0, "nats per token": 0.5}
"""Differences, by unit, that no part of a model is expected to make: a claim that needs more is called hopeless."""


@dataclass(frozen=True)
class Prospect:
    """What can be expected of a claim, in words. `is_hopeless`: it can hardly be answered, whatever is true."""

    claim: Settled
    words: str
    is_hopeless: bool = False


def prospects(study: Study) -> Iterator[Prospect]:
    """Yield a prospect for each claim: what its seeds would see, from the noise known so far."""
    noises = known_noise(study, {claim.metric for claim in study.claims} & set(SCORES))
    for claim in study.claims:
        if _are_chosen_unlike(study, claim):
            words = f"cannot be judged: its arms select weights differently, and by {claim.metric} itself"
            yield Prospect(claim, words, True)
            continue
        found = _prospect(study, claim, noises.get(claim.metric))
        yield replace(found, words=found.words + _if_chosen(study, claim) + _if_runs_diverge(study, claim))


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
    if claim.metric not in SCORES:
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
    return {chosen_by(claim.metric, flatten(cell.planned.recipe)) for cell in cells}


def _are_chosen_unlike(study: Study, claim: Settled) -> bool:
    return len(_methods(study, claim)) > 1


def _if_chosen(study: Study, claim: Settled) -> str:
    if _methods(study, claim) <= {None}:
        return ""
    return f"; {claim.metric} also chooses the weights, the best of several validations: it is no estimate for new data"


def _if_runs_diverge(study: Study, claim: Settled) -> str:
    """Return what a claim about quality becomes where runs diverge, if its seeds could show nothing then."""
    seeds, level = len(study.seeds), _level(study, claim)
    if claim.metric in ("failures", *COSTS) or seeds < MINIMUM_SEEDS:
        return ""
    if claim.parts:
        return "; should a run diverge, it cannot be tested"
    if seeds >= FEWEST_RANKED:
        p, way = compare_ranks([0.0] * seeds, [DIVERGED] * seeds).p, "all runs are ranked"
    else:
        p, way = compare_shares((0, seeds), (seeds, seeds)).p, "arms are compared by their shares of failures"
    if p <= level:
        return ""
    most = f"even all failing against none has p = {p:.3f}, and it needs {level:.3g}"
    more = f"; from {FEWEST_RANKED} seeds on, all runs are ranked" if seeds < FEWEST_RANKED else ""
    return f"; should a run diverge, {way}, which cannot reach significance: {most}{more}"


def _from_noise(study: Study, claim: Settled, noise: Noise, level: float) -> Prospect:
    seeds, unit = len(study.seeds), SCORES[claim.metric].unit
    layout = _Layout.of(study, claim)
    error, df = layout.precision(noise.sd, seeds)
    shown = f"(a run's standard deviation is {noise.sd:.3g}, over {noise.runs} runs of {noise.origin})"
    if claim.expect in BOUNDED:
        chance = POWERS[claim.expect](claim.margin, error, df, level)
        is_hopeless = chance < POOR
        words = f"if nothing differs, {seeds} seeds support it with a chance of {100 * chance:.0f} % {shown}"
    else:
        seen = detectable_difference(error, df, POWER, level)
        words = f"{seeds} seeds see a difference of {seen:.3g} {unit} with 80 % power {shown}"
        is_hopeless = seen > ABSURD[unit]
        chance = two_sided_power(claim.margin, error, df, level) if claim.margin else 1.0
    if not claim.margin or chance >= POWER:
        return Prospect(claim, words, is_hopeless)
    needed = _seeds_for(claim, noise, layout, level)
    cost = f"more than {MOST_SEEDS} seeds" if needed is None else f"{needed} seeds"
    aim = "a chance of 80 %" if claim.expect in BOUNDED else f"its margin of {claim.margin:g}"
    return Prospect(claim, f"{words}; {aim} takes {cost}", is_hopeless)


@dataclass(frozen=True)
class _Layout:
    """What decides the precision of a claim: the weights of its arms, and the number of other arms to borrow from.

    None: it borrows from none.
    """

    weights: Sequence[float]
    others: int | None

    @classmethod
    def of(cls, study: Study, claim: Settled) -> "_Layout":
        weights = list(claim.weights.values())
        borrows = study.experiment is None or study.experiment.error != "paired"
        return cls(weights, max(0, len(study.first_of_rows) - len(weights)) if borrows else None)

    def precision(self, sd: float, seeds: int) -> tuple[float, float]:
        """Return standard error and degrees of freedom of the moderated t test where all arms scatter alike.

        Or of the paired t test, were seeds not correlated across arms; where they are, it sees more.
        """
        squares = np.square(self.weights)
        error = float(sd * (squares.sum() / seeds) ** 0.5)
        if self.others is None:
            return error, seeds - 1
        of_arm = seeds - 1 + prior(self.others * (seeds - 1))
        return error, float(squares.sum() ** 2 / np.square(squares).sum() * of_arm)


POWERS = {
    "greater": two_sided_power,
    "less": two_sided_power,
    "equal": equivalence_power,
    "not_worse": one_sided_power,
}
"""Chance of a verdict: of a difference as large as the margin, or, for the last two, that nothing differs."""


def _seeds_for(claim: Settled, noise: Noise, layout: _Layout, level: float) -> int | None:
    for seeds in range(MINIMUM_SEEDS, MOST_SEEDS + 1):
        if POWERS[claim.expect](claim.margin, *layout.precision(noise.sd, seeds), level) >= POWER:
            return seeds
    return None
