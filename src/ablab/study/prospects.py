"""What the seeds of a study can tell about each of its claims, before they are trained."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ablab.statistics.moderated import prior
from ablab.statistics.paired import MINIMUM_SEEDS
from ablab.statistics.power import POWER, detectable_difference, equivalence_power, two_sided_power
from ablab.statistics.proportions import compare_shares
from ablab.store.scores import SCORES
from ablab.study.claims import Settled
from ablab.study.noise import Noise, known_noise
from ablab.study.study import Study

ALPHA = 0.05
MOST_SEEDS = 100

POOR = 0.2
"""Chance below which an *equal* claim is called hopeless."""

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
        yield _prospect(study, claim, noises.get(claim.metric))


def named(claim: Settled) -> str:
    """Return a claim as a user would write it in a line."""
    margin = f", margin {claim.margin:g}" if claim.margin else ""
    return f"{claim.arm} {claim.expect} {claim.baseline} in {claim.metric}{margin}"


def _prospect(study: Study, claim: Settled, noise: Noise | None) -> Prospect:
    seeds, level = len(study.seeds), ALPHA / len(study.claims)
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


def _from_noise(study: Study, claim: Settled, noise: Noise, level: float) -> Prospect:
    arms, seeds, unit = len(study.first_of_rows), len(study.seeds), SCORES[claim.metric].unit
    borrows = study.experiment is None or study.experiment.error != "paired"
    error, df = _precision(noise, arms if borrows else None, seeds)
    shown = f"(a run's standard deviation is {noise.sd:.3g}, over {noise.runs} runs of {noise.origin})"
    if claim.expect == "equal":
        chance = equivalence_power(claim.margin, error, df, level)
        is_hopeless = chance < POOR
        words = f"if nothing differs, {seeds} seeds support it with a chance of {100 * chance:.0f} % {shown}"
    else:
        seen = detectable_difference(error, df, POWER, level)
        words = f"{seeds} seeds see a difference of {seen:.3g} {unit} with 80 % power {shown}"
        is_hopeless = seen > ABSURD[unit]
        chance = two_sided_power(claim.margin, error, df, level) if claim.margin else 1.0
    if not claim.margin or chance >= POWER:
        return Prospect(claim, words, is_hopeless)
    needed = _seeds_for(claim, noise, arms if borrows else None, level)
    cost = f"more than {MOST_SEEDS} seeds" if needed is None else f"{needed} seeds"
    aim = "a chance of 80 %" if claim.expect == "equal" else f"its margin of {claim.margin:g}"
    return Prospect(claim, f"{words}; {aim} takes {cost}", is_hopeless)


def _precision(noise: Noise, arms: int | None, seeds: int) -> tuple[float, float]:
    """Return standard error and degrees of freedom of the moderated t test where so many arms scatter alike.

    None: of the paired t test, were seeds not correlated across arms; where they are, it sees more.
    """
    if arms is None:
        return noise.sd * (2 / seeds) ** 0.5, seeds - 1
    spare = (arms - 2) * (seeds - 1)
    return noise.sd * (2 / seeds) ** 0.5, 2 * (seeds - 1 + prior(spare))


def _seeds_for(claim: Settled, noise: Noise, arms: int | None, level: float) -> int | None:
    power = equivalence_power if claim.expect == "equal" else two_sided_power
    for seeds in range(MINIMUM_SEEDS, MOST_SEEDS + 1):
        if power(claim.margin, *_precision(noise, arms, seeds), level) >= POWER:
            return seeds
    return None
