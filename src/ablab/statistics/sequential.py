"""Verdicts of a study that adds seeds until its claims are settled, from the paired t test at each look.

A claim has a fixed share of the study's error, and boundaries (`looks`) that hold it over all looks. What borrows
error from other claims or noise from other arms is left out: its error under repeated looks is not known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ablab.statistics import student
from ablab.statistics.diverged import Shares
from ablab.statistics.interval import Interval, NotTestable
from ablab.statistics.looks import Looks
from ablab.statistics.moderated import Moderated
from ablab.statistics.paired import Paired, of_differences
from ablab.statistics.student import Floats
from ablab.statistics.verdict import (
    ALPHA,
    ONE_SIDED,
    Case,
    Evidence,
    Expectation,
    Failures,
    Verdict,
    described,
    outcome_of,
    tests_of_differences,
    tests_of_failures,
)

HOPELESS = 0.05
"""Chance of a verdict below which there is no point in going on. It binds nobody: errors are as small without it."""

PATHS = 4000
SEED = 20261123
"""Of simulated futures, fixed so that the same records give the same report."""

State = Literal["open", "settled", "hopeless", "spent"]
"""Spent: the last look has come, without a verdict."""


class Look(NamedTuple):
    """What a look at the first n seeds shows. `interval`: the repeated confidence interval, which holds at any stop."""

    n: int
    difference: float
    interval: Interval


@dataclass(frozen=True)
class Boundary:
    """The boundaries of one claim, with its share `alpha` of the error. The margin is at least 0."""

    looks: Looks
    alpha: float
    expect: Expectation
    margin: float

    def settled(self, means: Floats, sds: Floats, n: int) -> npt.NDArray[np.bool_]:
        """Return whether the look at n seeds settles the claim. means, sds: of the differences, any shape."""
        errors = np.asarray(sds) / n**0.5
        two, one = self._critical(self.alpha / 2, n) * errors, self._critical(self.alpha, n) * errors
        size = np.abs(means)
        if self.expect in ONE_SIDED:
            above = means + self.margin if self.expect == "not_less" else self.margin - means
            return np.asarray(np.abs(above) > one)
        beyond = size - (self.margin if self.expect == "equal" else 0.0) > two
        return np.asarray(beyond | (size + one < self.margin))

    def intervals(self, found: Paired) -> tuple[Interval, Interval]:
        """Return the repeated confidence intervals at 1 - alpha, and at 1 - 2 alpha for what is one-sided."""
        wide, narrow = (self.looks.level(alpha, found.n) for alpha in (self.alpha / 2, self.alpha))
        method = f"repeated confidence interval, look at {found.n} of {self.looks.last} seeds"
        return (
            replace(found.at(1 - 2 * wide), level=1 - self.alpha, method=method),
            replace(found.at(1 - 2 * narrow), level=1 - 2 * self.alpha, method=method),
        )

    def _critical(self, alpha: float, n: int) -> float:
        return student.quantile(1 - self.looks.level(alpha, n), n - 1)


@dataclass(frozen=True)
class Watched:
    """A claim as its seeds come in. `seeds`: that all of its arms have; `at`: the evidence of so many of them.

    A look reads only what the seeds so far say: what comes later cannot change what it saw.
    """

    expect: Expectation
    margin: float
    seeds: int
    at: Callable[[int], Evidence]

    @classmethod
    def of(cls, case: Case, looks: Looks) -> "Watched":
        """Return a claim whose seeds are all there. Without differences, the first look sees all that there is."""
        evidence = case.evidence
        if isinstance(evidence, Failures | NotTestable | Moderated):
            return cls(case.expect, case.margin, looks.first, lambda seeds: evidence)
        return cls(case.expect, case.margin, len(evidence), lambda seeds: evidence[:seeds])


@dataclass(frozen=True)
class Followed:
    """A claim followed from look to look, up to the one that settled it, or to the last so far.

    `seeds`: on which the verdict stands, of which some have no difference where a run diverged.
    """

    state: State
    looks: Sequence[Look]
    verdict: Verdict
    seeds: int
    chance: float | None = None
    """Chance of a verdict by the last look, if things go on as they have; of an open or hopeless claim with a look."""
    _found: tuple[Boundary, Paired] | None = None

    @cached_property
    def bias(self) -> float | None:
        """By how much the estimate at the stop exceeds the truth on average, were the truth what was found.

        A look that settles a claim is one at which its estimate happened to be large. None without looks.
        """
        return None if self._found is None else bias(*self._found)


def follow(cases: Sequence[Case], looks: Looks) -> list[Followed]:
    """Follow claims whose evidence is there, in the order in which seeds were added, as `follow_watched`."""
    return follow_watched([Watched.of(case, looks) for case in cases], looks)


def follow_watched(claims: Sequence[Watched], looks: Looks) -> list[Followed]:
    """Follow each claim through the looks that its seeds allow. The chance of any false verdict is at most ALPHA.

    Evidence is differences paired by seed, or failures where runs diverged: shares and ranks are judged once, at the
    last look. A claim that cannot be tested keeps its share. A verdict stands whatever later seeds bring.
    Raises TypeError for a moderated comparison.
    """
    share = ALPHA / max(1, len(claims))
    return [_follow(claim, Boundary(looks, share, claim.expect, claim.margin), len(claims)) for claim in claims]


class _Waiting(NotTestable):
    """No look as yet; a further seed may change that."""


def _follow(claim: Watched, boundary: Boundary, claims: int) -> Followed:
    looks, there = boundary.looks, min(claim.seeds, boundary.looks.last)
    seen: list[Look] = []
    found: Paired | Failures | NotTestable = _Waiting(
        f"the first look comes at {looks.first} seeds that both arms have without a gap, not {there}"
    )
    for seeds in range(looks.first, there + 1):
        found = _looked_at(claim.at(seeds), looks)
        if not isinstance(found, Paired) or (seen and seen[-1].n == found.n):
            continue  # the seed of a run that diverged adds no difference
        seen.append(Look(found.n, found.difference, boundary.intervals(found)[_shown(claim, found)]))
        if boundary.settled(np.array(found.difference), np.array(found.sd), found.n):
            verdict = _verdict(claim, boundary, found, claims)
            seen[-1] = seen[-1]._replace(interval=verdict.decided_by or seen[-1].interval)
            return Followed("settled", seen, verdict, seeds, None, (boundary, found))
    if isinstance(found, Failures):
        return _with_failures(claim, boundary, found, claims, there)
    if isinstance(found, _Waiting) and there < looks.last:
        return Followed("open", (), Verdict("provisional", n=there, reason=str(found)), there)
    if isinstance(found, NotTestable):
        return Followed("hopeless", (), Verdict("not testable", reason=str(found)), there)
    verdict = _verdict(claim, boundary, found, claims)
    if there == looks.last:
        return Followed("spent", seen, verdict, there, None, (boundary, found))
    chance = chance_of_a_verdict(boundary, found, lost=there - found.n)
    if chance < HOPELESS:
        return Followed("hopeless", seen, verdict, there, chance=chance)
    return Followed("open", seen, replace(verdict, outcome="provisional"), there, chance=chance)


def _looked_at(evidence: Evidence, looks: Looks) -> Paired | Failures | NotTestable:
    if isinstance(evidence, Moderated):
        raise TypeError("claims are followed from differences paired by seed, got a moderated comparison.")
    if isinstance(evidence, Failures | NotTestable):
        return evidence
    if (pairs := len(evidence)) < looks.first:
        return _Waiting(f"the first look comes at {looks.first} seeds that have a score in both arms, not {pairs}")
    try:
        return of_differences(evidence)
    except NotTestable as reason:  # no noise as yet
        return _Waiting(str(reason))


def _shown(claim: Watched, found: Paired) -> int:
    """Return which of the two intervals could decide a claim: the narrow one where it is about lying within the margin.

    That it lies beyond, the wide one shows.
    """
    return int(claim.expect in ONE_SIDED or (claim.expect == "equal" and abs(found.difference) < claim.margin))


def _with_failures(claim: Watched, boundary: Boundary, evidence: Failures, claims: int, seeds: int) -> Followed:
    compared, last = evidence.compared, boundary.looks.last
    found = described("provisional", evidence)
    if compared.runs < last:
        return Followed("open", (), replace(found, reason=f"runs diverged: judged once, at {last} seeds"), seeds)
    test, level = tests_of_failures(evidence, claim.expect), 2 * boundary.looks.level(boundary.alpha / 2, last)
    different, small, large = (p <= level for p in (test.zero, test.outside, test.inside))
    outcome = outcome_of(claim.expect, test.sign, different, small, large)
    decisive = test.zero if claim.expect in ("greater", "less") else min(test.outside, test.inside)
    corrected = min(1.0, claims * 2 * boundary.looks.adjusted(decisive / 2, last))
    measured = claim.margin > 0 and not isinstance(compared, Shares)
    judged = replace(found, outcome=outcome, corrected=corrected, large=large and measured)
    return Followed("spent" if outcome == "inconclusive" else "settled", (), judged, seeds)


def _verdict(claim: Watched, boundary: Boundary, found: Paired, claims: int) -> Verdict:
    test = tests_of_differences(found, claim.expect, claim.margin)
    looks, two_sided = boundary.looks, claim.expect not in ONE_SIDED
    zero, outside = 2 * looks.adjusted(test.zero / 2, found.n), looks.adjusted(test.outside, found.n)
    inside = 2 * looks.adjusted(test.inside / 2, found.n) if two_sided else looks.adjusted(test.inside, found.n)
    different, small, large = (p <= boundary.alpha for p in (zero, outside, inside))
    outcome = outcome_of(claim.expect, test.sign, different, small, large)
    wide, narrow = boundary.intervals(found)
    decisive = zero if claim.expect in ("greater", "less") else min(outside, inside)
    return replace(
        described(outcome, found),
        interval=wide,
        narrow=narrow,
        corrected=min(1.0, claims * decisive),
        test=f"paired t, looks after each of {looks.first} to {looks.last} seeds",
        local=2 * looks.level(boundary.alpha / 2, found.n),
        small=small and claim.margin > 0,
        large=large and claim.margin > 0,
        within=small or not two_sided,
    )


def chance_of_a_verdict(boundary: Boundary, found: Paired, lost: int = 0) -> float:
    """Return the chance that a later look settles the claim, given the looks so far. lost: seeds without a difference.

    Its true difference and noise are drawn from what n seeds say of them (the posterior under the usual vague prior),
    and the seeds to come from these: a few seeds leave much open, so they seldom call a claim hopeless.
    """
    rng, n = np.random.default_rng(SEED), found.n
    sd = found.sd * np.sqrt((n - 1) / rng.chisquare(n - 1, PATHS))
    mean = found.difference + sd / n**0.5 * rng.standard_normal(PATHS)
    begun = np.array([n, n * found.difference, (n - 1) * found.sd**2 + n * found.difference**2])
    return float(_stopped(boundary, rng, mean, sd, begun, boundary.looks.last - lost)[1].mean())


def bias(boundary: Boundary, found: Paired) -> float:
    """Return by how much the estimate at the stop exceeds the truth on average, were the truth what was found."""
    rng = np.random.default_rng(SEED)
    mean, sd = (np.full(PATHS, value) for value in (found.difference, found.sd))
    estimates, _ = _stopped(boundary, rng, mean, sd, np.zeros(3), boundary.looks.last)
    return float(estimates.mean() - found.difference)


def _stopped(
    boundary: Boundary, rng: np.random.Generator, mean: Floats, sd: Floats, begun: Floats, last: int
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Simulate studies from the seeds so far; return the estimate at the stop, and whether a look settled the claim.

    mean, sd: [paths]; begun: number, sum and sum of squares of the differences so far; last: of which there can be.
    """
    n = int(begun[0])
    sums, squares = np.full(mean.shape, begun[1]), np.full(mean.shape, begun[2])
    estimates, done = np.zeros_like(mean), np.zeros(mean.shape, dtype=bool)
    for seeds in range(n + 1, last + 1):
        drawn = mean + sd * rng.standard_normal(mean.shape)
        sums, squares = sums + drawn, squares + drawn**2
        if seeds < boundary.looks.first:
            continue
        means = sums / seeds
        sds = np.sqrt(np.maximum(squares - seeds * means**2, 0.0) / (seeds - 1))
        estimates = np.where(done, estimates, means)
        done |= boundary.settled(means, sds, seeds)
    return estimates, done
