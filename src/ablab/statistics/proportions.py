"""Shares of failures, by which small arms with diverged runs are compared, instead of by the mean of the survivors."""

from dataclasses import dataclass

from ablab.statistics.interval import Interval, check_level


@dataclass(frozen=True)
class Share:
    """The share of an arm's runs that failed, with its interval."""

    failed: int
    runs: int
    interval: Interval

    @property
    def value(self) -> float:
        """The share, in [0, 1]."""
        return self.failed / self.runs


@dataclass(frozen=True)
class Shares:
    """The shares of both arms; `p`: two-sided, uncorrected."""

    arm: Share
    baseline: Share
    p: float

    @property
    def difference(self) -> float:
        """Arm less baseline."""
        return self.arm.value - self.baseline.value

    @property
    def better(self) -> float:
        """1 where the arm fails less often, -1 where it fails more often, else 0."""
        return float((self.difference < 0) - (self.difference > 0))

    @property
    def beyond(self) -> float:
        """The same as `p`: a share has no margin."""
        return self.p

    @property
    def runs(self) -> int:
        """Runs of the smaller arm."""
        return min(self.arm.runs, self.baseline.runs)

    @property
    def method(self) -> str:
        return "Boschloo's exact test"


def share(failed: int, runs: int, level: float = 0.95) -> Share:
    """Return the share with the exact interval of Clopper & Pearson (1934), whose coverage is never below its level.

    With 3 to 10 runs that matters more than its width: Wilson's interval covers 95 % on average over shares only.
    """
    from scipy.stats import binomtest

    if not 0 <= failed <= runs or runs < 1:
        raise ValueError(f"0 <= failed <= runs and runs >= 1, got {failed=}, {runs=}.")
    found = binomtest(failed, runs).proportion_ci(check_level(level), method="exact")
    return Share(failed, runs, Interval(float(found.low), float(found.high), level, "Clopper-Pearson"))


def compare_shares(arm: tuple[int, int], baseline: tuple[int, int], level: float = 0.95) -> Shares:
    """Exact unconditional test of Boschloo (1970): never less powerful than Fisher's, and as exact.

    arm, baseline: (failed, runs). With 3 seeds, all against none: p = 1/32, where Fisher's exact test says 1/10.
    Runs under one seed are not taken as pairs. McNemar's exact test looks at seeds with unlike outcomes only, so below
    six of them it cannot reach 5 % whatever happens. If failing together is no rarer than chance, as with shared
    initial weights and batches, leaving the pairs out errs on the safe side.
    """
    from scipy.stats import boschloo_exact

    left, right = share(*arm, level), share(*baseline, level)
    table = [[left.failed, right.failed], [left.runs - left.failed, right.runs - right.failed]]
    return Shares(left, right, min(1.0, float(boschloo_exact(table).pvalue)))
