"""How often a comparison sees a difference between arms that differ by nothing: a placebo on real runs.

    python train.py -m experiment=a_vs_a
    python benchmarks/a_vs_a.py experiment=a_vs_a [the same further words]

The runs of one arm are split at random into two arms of n seeds, paired at random, again and again. What is asked each
time is what a report asks, after all seeds or at a look after every seed; beside it what is often done instead: one run
against another, a look after every seed at 5 % each, and greedy keeping: the runs are tried in a random order as if
each were a change, and what scores best so far is kept. Splits of so few runs resemble each other, so that the rates
are those of these runs, and no more exact than their number allows.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ablab.console import aligned
from ablab.report.selection_of_study import of_study
from ablab.statistics.interval import NotTestable
from ablab.statistics.looks import Looks
from ablab.statistics.paired import of_differences
from ablab.statistics.resampling import approximate_randomisation, crossed_bootstrap
from ablab.statistics.sequential import follow
from ablab.statistics.verdict import Case, verdicts
from ablab.study.definition import define

SPLITS, LOOKED_AT, RESAMPLED = 20_000, 4_000, 400
"""How many; fewer where each takes several looks or thousands of resamples."""

FIRST = 3
"""Seeds at the first look."""

RESAMPLES = 2_000
LEVEL = 0.05
MARGIN = 0.5
"""BLEU, of the claims."""


@dataclass(frozen=True)
class Runs:
    """Of one arm. `scores`: [runs]; `statistics`: [runs, sentences, k]."""

    scores: np.ndarray
    statistics: np.ndarray

    def split(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of n runs and of n others."""
        chosen = rng.permutation(len(self.scores))[: 2 * n]
        return chosen[:n], chosen[n:]


def main() -> None:
    """A line for each method and number of seeds."""
    selection = of_study(define(tuple(sys.argv[1:])))
    found = [run.evaluation for run in selection.arms[0].finished if run.evaluation]
    if len(found) < 6:
        sys.exit(f"error: {len(found)} finished runs; two arms of 3 seeds need at least 6")
    runs = Runs(np.array([one.bleu for one in found]), np.array([one.statistics for one in found], dtype=np.float64))
    spread = f"{runs.scores.std(ddof=1):.2f} BLEU"
    print(f"{len(found)} runs of one arm: BLEU {runs.scores.mean():.2f}, standard deviation over seeds {spread}")
    rows = [["method", "n", "splits", "sees a difference"]]
    rows += [[name, str(n), str(splits), f"{100 * rate:.1f} %"] for name, n, splits, rate in rates(runs)]
    for line in aligned(rows, left=1):
        print(line.rstrip())
    for size in (size for size in (1, 3) if len(runs.scores) >= 2 * size):
        print(greedy(runs, size))


def rates(runs: Runs) -> Iterator[tuple[str, int, int, float]]:
    """Method, seeds an arm, splits, share of splits in which it sees a difference."""
    rng = np.random.default_rng(1)
    several = [n for n in (3, 5, 6) if 2 * n <= len(runs.scores)]
    for n in several:
        yield "paired t, p below 5 %", n, SPLITS, _share(runs, n, SPLITS, rng, _t_test)
    for n in several:
        yield "claim of 'greater', a difference found", n, SPLITS, _share(runs, n, SPLITS, rng, _claim)
    for n in several:
        yield "seeds and sentences, p below 5 %", n, RESAMPLED, _share(runs, n, RESAMPLED, rng, _crossed)
    if len(runs.scores) >= 2 * (FIRST + 1):
        n = len(runs.scores) // 2
        yield (
            f"a look after each of {FIRST} to {n} seeds, any verdict",
            n,
            LOOKED_AT,
            _share(runs, n, LOOKED_AT, rng, _looks),
        )
        yield (
            f"paired t after each of {FIRST} to {n} seeds, any p below 5 %",
            n,
            SPLITS,
            _share(runs, n, SPLITS, rng, _peeks),
        )
    yield "one run each, randomisation of the test set", 1, RESAMPLED, _share(runs, 1, RESAMPLED, rng, _one_run_each)
    yield f"one run each, at least {MARGIN} BLEU apart", 1, SPLITS, _share(runs, 1, SPLITS, rng, _apart)


Test = Callable[[Runs, np.ndarray, np.ndarray, np.random.Generator], bool]


def _share(runs: Runs, n: int, splits: int, rng: np.random.Generator, test: Test) -> float:
    return sum(_tested(test, runs, *runs.split(n, rng), rng) for _ in range(splits)) / splits


def _tested(test: Test, runs: Runs, arm: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> bool:
    try:
        return test(runs, arm, other, rng)
    except NotTestable:
        return False


def _t_test(runs: Runs, arm: np.ndarray, other: np.ndarray, _: np.random.Generator) -> bool:
    return of_differences(runs.scores[arm] - runs.scores[other]).p < LEVEL


def _claim(runs: Runs, arm: np.ndarray, other: np.ndarray, _: np.random.Generator) -> bool:
    differences: Sequence[float] = list(runs.scores[arm] - runs.scores[other])
    (verdict,) = verdicts([Case("greater", MARGIN, differences)])
    return verdict.outcome in ("supported", "refuted", "real, but smaller than matters")


def _crossed(runs: Runs, arm: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> bool:
    found = crossed_bootstrap(runs.statistics[arm], runs.statistics[other], rng, resamples=RESAMPLES)
    return found.p < LEVEL


def _one_run_each(runs: Runs, arm: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> bool:
    found = approximate_randomisation(runs.statistics[arm], runs.statistics[other], rng, trials=RESAMPLES)
    return found.p < LEVEL


def _apart(runs: Runs, arm: np.ndarray, other: np.ndarray, _: np.random.Generator) -> bool:
    return abs(float(runs.scores[arm][0] - runs.scores[other][0])) >= MARGIN


def _looks(runs: Runs, arm: np.ndarray, other: np.ndarray, _: np.random.Generator) -> bool:
    differences: Sequence[float] = list(runs.scores[arm] - runs.scores[other])
    (found,) = follow([Case("greater", MARGIN, differences)], Looks(FIRST, len(differences)))
    return found.verdict.outcome in ("supported", "refuted", "real, but smaller than matters")


def _peeks(runs: Runs, arm: np.ndarray, other: np.ndarray, _: np.random.Generator) -> bool:
    differences = runs.scores[arm] - runs.scores[other]
    return any(of_differences(differences[:n]).p < LEVEL for n in range(FIRST, differences.size + 1))


def greedy(runs: Runs, size: int) -> str:
    """Say how often greedy keeping ends with a change, and what it seems to have gained. size: runs of a change."""
    rng = np.random.default_rng(1)
    orders = np.array([rng.permutation(runs.scores) for _ in range(SPLITS)])
    tried = orders[:, : orders.shape[1] // size * size].reshape(SPLITS, -1, size).mean(axis=2)
    kept = tried.argmax(axis=1) > 0
    gained = (tried.max(axis=1) - tried[:, 0]).mean()
    return (
        f"greedy keeping, {tried.shape[1] - 1} changes of {size} run{'s' * (size > 1)}: something is kept in "
        f"{100 * kept.mean():.0f} % of the orders, and {gained:.2f} BLEU seem to be gained on average"
    )


if __name__ == "__main__":
    main()
