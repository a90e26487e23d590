"""How many seeds a claim needs: the chance of its verdict, from the noise of a run and the arms that it weighs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ablab.statistics.moderated import prior
from ablab.statistics.paired import MINIMUM_SEEDS
from ablab.statistics.power import POWER, equivalence_power, one_sided_power, two_sided_power

MOST_SEEDS = 1000
"""Nobody trains more."""

POWERS = {
    "greater": two_sided_power,
    "less": two_sided_power,
    "equal": equivalence_power,
    "not_worse": one_sided_power,
}
"""Chance of a verdict: on a difference as large as the margin, or, for the last two, if nothing differs."""


@dataclass(frozen=True)
class Layout:
    """What decides the precision of a claim: the weights of its arms, and the number of other arms to borrow from.

    `others`: None if it borrows from none, and is judged by its pairs.
    """

    weights: Sequence[float]
    others: int | None

    def precision(self, sd: float, seeds: int) -> tuple[float, float]:
        """Return standard error and degrees of freedom if runs of all arms have the standard deviation `sd`.

        Of the moderated t test; or of the paired one, were seeds not correlated across arms. Where they are, it sees
        more.
        """
        squares = np.square(self.weights)
        error = float(sd * (squares.sum() / seeds) ** 0.5)
        if self.others is None:
            return error, seeds - 1
        of_arm = seeds - 1 + prior(self.others * (seeds - 1))
        return error, float(squares.sum() ** 2 / np.square(squares).sum() * of_arm)

    def sd(self, standard_error: float, seeds: int) -> float:
        """Return the standard deviation of a run that gives this standard error."""
        return float(standard_error * (seeds / np.square(self.weights).sum()) ** 0.5)


def seeds_for(
    expect: str, margin: float, sd: float, layout: Layout, alpha: float = 0.05, power: float = POWER
) -> int | None:
    """Return the fewest seeds with which a claim is decided with this power; None beyond MOST_SEEDS.

    Never fewer than may be tested. `expect`: a key of POWERS; `margin` > 0, in the units of `sd`.
    """
    if not margin > 0 or not sd > 0:
        raise ValueError(f"margin and sd are above 0, got {margin=}, {sd=}.")

    def is_enough(seeds: int) -> bool:
        return POWERS[expect](margin, *layout.precision(sd, seeds), alpha) >= power

    low, high = MINIMUM_SEEDS - 1, MINIMUM_SEEDS
    while not is_enough(high):
        low, high = high, 2 * high
        if low >= MOST_SEEDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high if high <= MOST_SEEDS else None


def sd_range(sd: float, df: float, level: float = 0.8) -> tuple[float, float]:
    """Return the interval of a normal standard deviation that was estimated with so many degrees of freedom."""
    from scipy.stats import chi2

    tails = chi2.ppf([(1 + level) / 2, (1 - level) / 2], df)
    low, high = sd * np.sqrt(df / tails)
    return float(low), float(high)
