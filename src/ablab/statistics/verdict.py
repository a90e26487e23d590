"""Verdicts on the claims of a study, judged together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ablab.statistics import student
from ablab.statistics.diverged import RankComparison, Shares
from ablab.statistics.interval import Interval, NotTestable
from ablab.statistics.moderated import Moderated
from ablab.statistics.multiple import family, simultaneous_level
from ablab.statistics.paired import MINIMUM_SEEDS, Paired, of_differences, tost
from ablab.statistics.student import Floats

ALPHA = 0.05
"""Chance of any false verdict over the claims of a study that share an error rate."""

Expectation = Literal["greater", "less", "equal", "not_less", "not_greater"]
"""Not less: by less than the margin, if at all; one-sided."""

ONE_SIDED = ("not_less", "not_greater")

Outcome = Literal[
    "supported",
    "refuted",
    "equivalent",
    "inconclusive",
    "real, but smaller than matters",
    "not testable",
    "provisional",
]
"""Provisional: the study has not ended. Looking for verdicts before that would make false ones."""


@dataclass(frozen=True)
class Failures:
    """Evidence where runs diverged. A failure is always for the worse: a lower BLEU, a higher loss."""

    compared: Shares | RankComparison
    higher_is_better: bool


Evidence = Floats | Sequence[float] | Moderated | Failures | NotTestable
"""A moderated comparison, or differences paired by seed, which are judged by the paired t test, or where runs diverged
shares of failures or ranks.
"""


@dataclass(frozen=True)
class Case:
    """A claim and its evidence: arm less baseline in the metric's units, or the reason why there is none.

    `margin` >= 0: the smallest difference that matters; 0: none was stated.
    """

    expect: Expectation
    margin: float
    evidence: Evidence


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim. None: the evidence has no such number.

    `difference`: arm less baseline, whatever was expected; of metric, or of shares of failures; or the share of pairs
    of runs won less lost, where runs were ranked. `interval`: the Holm interval, at 1 - local; the claim is supported
    or refuted as it says. `narrow`: at 1 - 2 local, for equivalence.
    `simultaneous`: all claims' intervals at once (Bonferroni). `p`: two-sided, of no difference, uncorrected;
    `corrected`: over the family, of no difference, or for *equal* of whichever falls first, as large as the margin or
    smaller. `test`: the method, in words; `standard_error` and `df`: of its difference. `local`: the level that Holm
    leaves to this claim. `small`: shown to be within the margin; `large`: shown to lie at or beyond it.
    `within`: the outcome is about lying within the margin, or on one side of it. `reason`: what is missing.
    """

    outcome: Outcome
    n: int = 0
    difference: float | None = None
    interval: Interval | None = None
    narrow: Interval | None = None
    simultaneous: Interval | None = None
    p: float | None = None
    corrected: float | None = None
    test: str | None = None
    standard_error: float | None = None
    df: float | None = None
    local: float | None = None
    small: bool = False
    large: bool = False
    within: bool = False
    reason: str | None = None

    @property
    def decided_by(self) -> Interval | None:
        """The interval on which the outcome rests: the narrow one where it is about lying within the margin."""
        return self.narrow if self.within else self.interval

    @property
    def different(self) -> bool:
        """Whether 0 is ruled out at an equal share of the 5 %, which *equal* and *not worse* claims do not ask."""
        if self.p is None or self.local is None:
            return False
        return self.p <= (self.local if self.simultaneous is None else 1 - self.simultaneous.level)


@dataclass(frozen=True)
class Tests:
    """Unadjusted p-values of a case, as `family` takes them, and the direction in which its metric differs."""

    zero: float = 1.0
    outside: float = 1.0
    inside: float = 1.0
    settled: float = 1.0
    sign: float = 0.0


def verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """One for each case. The chance that any of them is false is at most ALPHA, over all of a study's claims.

    A *greater* claim is supported when its Holm interval lies above 0, refuted when below, equivalent when its interval
    at 1 - 2 local lies within the margin, else inconclusive; supported and equivalent at once: "real, but smaller than
    matters". *Less* mirrors it. An *equal* claim is supported within the margin, and refuted when its Holm interval
    lies wholly at or beyond the margin; with a margin of 0 it can only be refuted. A *not less* claim is supported when
    its interval at 1 - 2 local lies above -margin, and refuted when below: each is a one-sided test at the local level
    (non-inferiority; Rothmann, Wiens & Chan 2012). *Not greater* mirrors it. Fewer than 3 seeds: not testable.

    What counts as false: supported, when the difference is 0 or has the other sign; refuted likewise; equivalent, or
    smaller than matters, when it is as large as the margin; for *equal*, supported then, and refuted when it is not;
    beyond the margin (`large`), when it is smaller.
    Claims that cannot be tested stay in the family. Errors of direction rest on Shaffer (1980) and Finner (1999), whose
    proofs take the claims' estimates to be independent; for arms that share a baseline, as here, it is simulated.
    """
    judged = [_judge(case) for case in cases]
    tests = [test for _, test in judged]
    corrected = family(
        [test.zero for test in tests],
        [test.outside for test in tests],
        [test.inside for test in tests],
        [test.settled for test in tests],
        ALPHA,
    )
    results = []
    for i, (case, (evidence, test)) in enumerate(zip(cases, judged, strict=True)):
        if isinstance(evidence, NotTestable):
            results.append(Verdict("not testable", reason=str(evidence), n=_seeds(case.evidence)))
            continue
        zero, outside, inside = (float(way[i]) for way in (corrected.zero, corrected.outside, corrected.inside))
        different, small, large = zero <= ALPHA, outside <= ALPHA, inside <= ALPHA
        outcome = outcome_of(case.expect, test.sign, different, small, large)
        decisive = zero if case.expect in ("greater", "less") else min(outside, inside)
        found = _corrected(outcome, evidence, decisive, float(corrected.local[i]), len(cases))
        within = small or case.expect in ONE_SIDED
        measured = case.margin > 0 and not _are_shares(evidence)
        results.append(replace(found, small=small and measured, large=large and measured, within=within))
    return results


def so_far(case: Case) -> Verdict:
    """Return the estimate of a claim by itself, with its 95 % interval, while runs of its study are awaited."""
    evidence, _ = _judge(case)
    if isinstance(evidence, NotTestable):
        return Verdict("provisional", n=_seeds(case.evidence), reason=f"so far, {evidence}")
    interval = None if isinstance(evidence, Failures) else evidence.at(0.95)
    return replace(described("provisional", evidence), interval=interval, p=None)


def outcome_of(expect: Expectation, sign: float, different: bool, small: bool, large: bool) -> Outcome:
    if expect not in ("greater", "less"):
        return "supported" if small else "refuted" if large else "inconclusive"
    if different and sign == (1 if expect == "greater" else -1):
        return "real, but smaller than matters" if small else "supported"
    return "refuted" if different else "equivalent" if small else "inconclusive"


def _judge(case: Case) -> tuple[Paired | Moderated | Failures | NotTestable, Tests]:
    if not case.margin >= 0:
        raise ValueError(f"a margin is at least 0, got {case.margin=}.")
    if isinstance(case.evidence, NotTestable):
        return case.evidence, Tests()
    if isinstance(case.evidence, Failures):
        return case.evidence, tests_of_failures(case.evidence, case.expect)
    try:
        found = case.evidence if isinstance(case.evidence, Moderated) else of_differences(case.evidence)
        if found.n < MINIMUM_SEEDS:
            raise NotTestable(f"too few seeds: a claim needs at least {MINIMUM_SEEDS}, both arms have {found.n}")
    except NotTestable as reason:
        return reason, Tests()
    return found, tests_of_differences(found, case.expect, case.margin)


def tests_of_differences(found: Paired | Moderated, expect: Expectation, margin: float) -> Tests:
    error, df, size = found.standard_error, found.df, abs(found.difference)
    if expect in ONE_SIDED:
        above = found.difference + margin if expect == "not_less" else margin - found.difference
        worse, enough = (float(student.upper_tail(way * above / error, df)) for way in (1, -1))
        return Tests(outside=worse, inside=enough, settled=min(worse, enough), sign=float(np.sign(found.difference)))
    outside = tost(found.difference, error, df, margin) if size < margin else 1.0
    inside = float(student.two_sided((size - margin) / error, df)) if size > margin else 1.0
    zero = 1.0 if expect == "equal" else found.p
    small = outside if expect == "equal" else max(zero, outside)
    return Tests(zero, outside, inside, min(small, inside), float(np.sign(found.difference)))


def tests_of_failures(failures: Failures, expect: Expectation) -> Tests:
    """Shares and ranks can show a difference, and ranks one beyond the margin; neither shows the lack of one.

    Both can show that an arm is not worse: it fails less often, or is ahead with the margin added.
    """
    compared = failures.compared
    sign = compared.better if failures.higher_is_better else -compared.better
    if expect in ONE_SIDED:
        worse = sign == (-1 if expect == "not_less" else 1)
        beyond = compared.beyond if worse else 1.0
        kept = compared.kept if (expect == "not_less") == failures.higher_is_better else 1.0
        return Tests(outside=kept, inside=beyond, settled=min(kept, beyond), sign=sign)
    if expect == "equal":
        return Tests(inside=compared.beyond, settled=compared.beyond, sign=sign)
    return Tests(compared.p, inside=compared.beyond, settled=max(compared.p, compared.beyond), sign=sign)


def _are_shares(evidence: object) -> bool:
    """Shares of failures have no margin."""
    return isinstance(evidence, Failures) and isinstance(evidence.compared, Shares)


def described(outcome: Outcome, evidence: Paired | Moderated | Failures) -> Verdict:
    """Return a verdict with the figures of its evidence alone, uncorrected."""
    if isinstance(evidence, Failures):
        found = evidence.compared
        return Verdict(outcome, n=found.runs, difference=found.difference, p=found.p, test=found.method)
    return Verdict(
        outcome,
        n=evidence.n,
        difference=evidence.difference,
        p=evidence.p,
        test=evidence.method,
        standard_error=evidence.standard_error,
        df=evidence.df,
    )


def _corrected(
    outcome: Outcome, evidence: Paired | Moderated | Failures, corrected: float, local: float, claims: int
) -> Verdict:
    found = replace(described(outcome, evidence), corrected=corrected)
    if isinstance(evidence, Failures):
        return found
    levels = (1 - local, 1 - 2 * local, simultaneous_level(claims, 1 - ALPHA))
    holm, narrow, simultaneous = (evidence.at(level) for level in levels)
    return replace(found, interval=holm, narrow=narrow, simultaneous=simultaneous, local=local)


def _seeds(evidence: object) -> int:
    """Return the number of differences."""
    if isinstance(evidence, NotTestable | Failures):
        return 0
    return evidence.n if isinstance(evidence, Moderated) else len(np.atleast_1d(np.asarray(evidence)))
