"""Power of t tests: the chance that they find a difference, which one they could find, and with how many seeds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from ablab.statistics import student
from ablab.statistics.moderated import Moderated, estimated, prior
from ablab.statistics.paired import MINIMUM_SEEDS
from ablab.statistics.student import Floats

POWER = 0.8
"""Chance of a verdict for which seeds are planned."""

MOST_SEEDS = 1000
"""Nobody trains more."""

DRAWS = 1024
SEED = 20261130
"""Of what the moderated test may estimate of the noise; fixed so that the same noise gives the same plan."""


def two_sided_power(effect: float, standard_error: float, df: float, alpha: float = 0.05) -> float:
    """Chance that a two-sided t test at `alpha` finds a true difference of `effect`, in either direction.

    t is noncentral with parameter effect / standard_error (Cohen 1988, section 2.4).
    """
    from scipy.stats import nct

    _check(standard_error, alpha)
    shift, critical = abs(effect) / standard_error, student.quantile(1 - alpha / 2, df)
    # The far tail is computed as the near tail of the reflected distribution: scipy's is NaN for large shifts.
    return float(nct.sf(critical, df, shift) + nct.sf(critical, df, -shift))


def one_sided_power(margin: float, standard_error: float, df: float, alpha: float = 0.05) -> float:
    """Chance that a one-sided t test shows a true difference of 0 to be less than the margin for the worse."""
    from scipy.stats import nct

    _check(standard_error, alpha)
    return float(nct.sf(student.quantile(1 - alpha, df), df, margin / standard_error))


def equivalence_power(margin: float, standard_error: float, df: float, alpha: float = 0.05) -> float:
    """Chance that two one-sided t tests at `alpha` each show a true difference of 0 to lie within the margin.

    The estimate must be closer to 0 than margin - t s, where s is the standard error as estimated: the mean, over the
    distribution of s, of the chance of that (Owen 1965).
    """
    from scipy.stats import chi2, norm

    _check(standard_error, alpha)
    probabilities = (np.arange(400) + 0.5) / 400
    estimated = standard_error * np.sqrt(chi2.ppf(probabilities, df) / df)
    room = np.maximum(0.0, margin - student.quantile(1 - alpha, df) * estimated)
    return float((2 * norm.cdf(room / standard_error) - 1).mean())


def detectable_difference(standard_error: float, df: float, alpha: float = 0.05) -> float:
    """The smallest true difference that a two-sided t test finds with POWER, in the units of `standard_error`.

    It is meant for the noise of earlier or pilot runs. From the noise of the very study it is a description of its
    precision, as its interval is, and no evidence for or against the null.
    """
    _check(standard_error, alpha)
    return standard_error * _detectable(df, alpha)


@cache
def _detectable(df: float, alpha: float) -> float:
    """In standard errors; remembered, since the arms of a study mostly have equally many seeds."""
    return _least(lambda shift: two_sided_power(shift, 1.0, df, alpha))


def _least(chance: Callable[[float], float]) -> float:
    """Return the shift, in standard errors, at which a chance that grows with it is POWER."""
    from scipy.optimize import brentq

    high = 1.0
    while chance(high) < POWER:
        high *= 2
    return float(brentq(lambda shift: chance(shift) - POWER, 0.0, high, xtol=1e-9))


def _check(sd: float, alpha: float) -> None:
    if not sd > 0:
        raise ValueError(f"sd must be above 0, got {sd=}.")
    if not 0 < alpha < POWER:
        raise ValueError(f"alpha lies between 0 and the power of {POWER}, got {alpha=}.")


POWERS = {
    "greater": two_sided_power,
    "less": two_sided_power,
    "equal": equivalence_power,
    "not_worse": one_sided_power,
}
"""Chance of a verdict: on a difference as large as the margin, or, for the last two, if nothing differs."""


@dataclass(frozen=True)
class Layout:
    """What decides the power of a claim: the weights of its arms, and how many other arms lend it their noise.

    `others`: None if it borrows from none, and is judged by its pairs. `variances`: of its arms, and `rest`, of the
    others, of which only the ratios count; by default, all scatter alike. `spare`: degrees of freedom of the others
    together, where they have other seeds than its arms.
    """

    weights: tuple[float, ...]
    others: int | None
    variances: tuple[float, ...] = ()
    rest: float = 1.0
    spare: float | None = None

    @classmethod
    def of(cls, weights: Iterable[float], found: Moderated | None) -> "Layout":
        """Return that of a new study like one that was judged, by the moderated test or, for None, by its pairs."""
        if found is None:
            return cls(tuple(weights), None)
        return cls(tuple(found.shares), found.lenders, tuple(found.variances), found.rest)

    def power(self, expect: str, margin: float, sd: float, seeds: int, alpha: float = 0.05) -> float:
        """Return the chance of a verdict if runs have the standard deviation `sd` on average; see POWERS.

        Of the moderated t test; or of the paired one, were seeds not correlated across arms. Where they are, it sees
        more.
        """
        error = self.error(sd, seeds)
        if self.others is None:
            return POWERS[expect](margin, error, seeds - 1, alpha)
        return self._power(expect, margin / error, seeds, alpha)

    def detectable(self, sd: float, seeds: int, alpha: float = 0.05) -> float:
        """Return the smallest true difference that is found with POWER, in the units of `sd`."""
        error = self.error(sd, seeds)
        if self.others is None:
            return detectable_difference(error, seeds - 1, alpha)
        return error * _least(lambda shift: self._power("greater", shift, seeds, alpha))

    def error(self, sd: float, seeds: int) -> float:
        """Return the true standard error of what is estimated."""
        return float(sd * (self._parts.sum() / seeds) ** 0.5)

    def sd(self, standard_error: float, seeds: int) -> float:
        """Return the standard deviation of a run that gives this standard error; the mean one where arms differ."""
        return float(standard_error * (seeds / self._parts.sum()) ** 0.5)

    @property
    def _parts(self) -> Floats:
        """Of the variance of the weighted sum, by arm, for runs of variance 1 on average."""
        variances = np.asarray(self.variances or np.ones(len(self.weights)))
        return np.asarray(np.square(self.weights) * variances / variances.mean())

    def _power(self, expect: str, shift: float, seeds: int, alpha: float) -> float:
        """Return the power for a difference or a margin of `shift` true standard errors.

        The estimate and its standard error are independent where noise is normal: the mean, over what the test may
        estimate of the noise, of the chance that the estimate is far enough, or for `equal` close enough.
        """
        from scipy.special import ndtr

        one_sided = expect in ("equal", "not_worse")
        room = shift - _reach(self, seeds, alpha if one_sided else alpha / 2)
        if expect == "equal":
            return float((2 * ndtr(np.maximum(room, 0.0)) - 1).mean())
        return float((ndtr(room) + (0.0 if one_sided else ndtr(room - 2 * shift))).mean())


def seen(
    weights: Iterable[float], found: Moderated | None, standard_error: float, seeds: int, alpha: float = 0.05
) -> float:
    """Return the true difference that the seeds of a comparison detect with a power of 80 %, by the noise it has.

    `found`: None where its pairs decide. The lenders have the seeds that they have.
    """
    layout = Layout.of(weights, found)
    if found is not None:
        layout = replace(layout, spare=found.spare)
    return layout.detectable(layout.sd(standard_error, seeds), seeds, alpha)


@lru_cache(maxsize=256)
def _reach(layout: Layout, seeds: int, tail: float) -> Floats:
    """Return how far from 0 an estimate must be, in true standard errors, by what is estimated of the noise, [DRAWS].

    All draws are equally likely. `tail`: probability beyond the critical value.
    """
    from scipy.special import chdtri, stdtrit

    arms, degrees = len(layout.weights), seeds - 1
    spare = (layout.others or 0) * degrees if layout.spare is None else layout.spare
    variances = np.asarray(layout.variances or np.ones(arms))
    shares, draws = np.asarray(layout.weights), _draws(arms + 1)
    own = variances * chdtri(degrees, draws[:, :arms]) / degrees
    rest = layout.rest * chdtri(spare, draws[:, arms:]) / spare if spare else 0.0
    found = estimated(own, rest, prior(spare), shares, seeds)
    true = (np.square(shares) @ variances / seeds) ** 0.5
    return np.asarray(stdtrit(found.df, 1 - tail) * found.error / true)


@cache
def _draws(dimensions: int) -> Floats:
    """Return points that fill the cube evenly: with so many independent ones, powers would be off by 0.01."""
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(dimensions, seed=np.random.default_rng(SEED)).random(DRAWS))


def seeds_for(expect: str, margin: float, sd: float, layout: Layout, alpha: float = 0.05) -> int | None:
    """Return the fewest seeds with which a claim is decided with POWER; None beyond MOST_SEEDS.

    Never fewer than may be tested. `expect`: a key of POWERS; `margin` > 0, in the units of `sd`.
    """
    if not margin > 0 or not sd > 0:
        raise ValueError(f"margin and sd are above 0, got {margin=}, {sd=}.")

    def is_enough(seeds: int) -> bool:
        return layout.power(expect, margin, sd, seeds, alpha) >= POWER

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
