"""How often a comparison sees a difference between arms that differ by nothing: a placebo on real runs.

    python train.py -m experiment=a_vs_a
    python benchmarks/a_vs_a.py experiment=a_vs_a [the same further words]

The runs of one arm are split at random into two arms of n seeds, paired at random, again and again. What is asked each
time is what a report asks, after all seeds or at a look after every seed; beside it what is often done instead: one run
against another, a look after every seed at 5 % each, and greedy keeping: the runs are tried in a random order as if
each were a change, and what scores best so far is kept. Splits of so few runs resemble each other, so that the rates
are those of these runs, and no more exact than their number allows. Writes them and draws them.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from ablab.judge.selection_of_study import of_study
from ablab.statistics.interval import NotTestable
from ablab.statistics.looks import Looks
from ablab.statistics.paired import of_differences
from ablab.statistics.resampling import Swaps, crossed_bootstrap
from ablab.statistics.sequential import follow
from ablab.statistics.verdict import Case, verdicts
from ablab.study.definition import define
from ablab.text import aligned, how_many
from ablab.transformer.data.scoring import corpus_bleu

RESULTS = Path(__file__).parent / "results" / "placebo.json"
PICTURE = Path(__file__).parents[1] / "docs" / "results" / "placebo.png"

SPLITS, LOOKED_AT, RESAMPLED = 20_000, 4_000, 400
"""How many; fewer where each takes several looks or thousands of resamples."""

SEEDS = (3, 5, 10)
"""Of an arm, where the runs make two of so many."""

FIRST = 3
"""Seeds at the first look."""

RESAMPLES = 2_000
LEVEL = 0.05
OURS, OTHERS = "#0072B2", "#9a9a9a"
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


class Rate(NamedTuple):
    """How often a method with `n` seeds an arm sees a difference; `ours`: as a report asks."""

    method: str
    n: int
    splits: int
    rate: float
    ours: bool = False


class Greedy(NamedTuple):
    """How often greedy keeping ends with a change, and the BLEU it seems to have gained. `size`: runs of a change."""

    changes: int
    size: int
    kept: float
    gained: float


def main() -> None:
    """A line for each method and number of seeds."""
    selection = of_study(define(tuple(sys.argv[1:])))
    found = [run.evaluation for run in selection.arms[0].finished if run.evaluation]
    if len(found) < 6:
        sys.exit(f"error: {len(found)} finished runs; two arms of 3 seeds need at least 6")
    runs = Runs(
        np.array([one.scores["bleu"] for one in found]),
        np.array([one.items["bleu"] for one in found], dtype=np.float64),
    )
    spread = f"{runs.scores.std(ddof=1):.2f} BLEU"
    print(f"{len(found)} runs of one arm: BLEU {runs.scores.mean():.2f}, standard deviation over seeds {spread}")
    seen = list(rates(runs))
    rows = [["method", "n", "splits", "sees a difference"]]
    rows += [[one.method, str(one.n), f"{one.splits:,}", f"{100 * one.rate:.1f} %"] for one in seen]
    for line in aligned(rows, left=1):
        print(line.rstrip())
    kept = [greedy(runs, size) for size in (1, 3) if len(runs.scores) >= 2 * size]
    for one in kept:
        print(
            f"greedy keeping, {one.changes} changes of {how_many(one.size, 'run')}: something is kept in "
            f"{100 * one.kept:.0f} % of the orders, and {one.gained:.2f} BLEU seem to be gained on average"
        )
    content = {"runs": len(found), "bleu": runs.scores.tolist()}
    content |= {"rates": [one._asdict() for one in seen], "greedy": [one._asdict() for one in kept]}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    draw(seen, kept)
    print(f"Results: {RESULTS}, {PICTURE}")


def rates(runs: Runs) -> Iterator[Rate]:
    """Count the splits in which each method sees a difference."""
    rng = np.random.default_rng(1)
    several = [n for n in SEEDS if 2 * n <= len(runs.scores)]
    for n in several:
        yield Rate("paired t, p below 5 %", n, SPLITS, _share(runs, n, SPLITS, rng, _t_test), ours=True)
    for n in several:
        yield Rate("claim of 'greater', a difference found", n, SPLITS, _share(runs, n, SPLITS, rng, _claim), ours=True)
    for n in several:
        share = _share(runs, n, RESAMPLED, rng, _crossed)
        yield Rate("seeds and sentences, p below 5 %", n, RESAMPLED, share, ours=True)
    if len(runs.scores) >= 2 * (FIRST + 1):
        n = min(len(runs.scores) // 2, SEEDS[-1])
        share = _share(runs, n, LOOKED_AT, rng, _looks)
        yield Rate(f"a look after each of {FIRST} to {n} seeds, a difference found", n, LOOKED_AT, share, ours=True)
        share = _share(runs, n, SPLITS, rng, _peeks)
        yield Rate(f"paired t after each of {FIRST} to {n} seeds, any p below 5 %", n, SPLITS, share)
    share = _share(runs, 1, RESAMPLED, rng, _one_run_each)
    yield Rate("one run each, test over sentences, p below 5 %", 1, RESAMPLED, share)
    share = _share(runs, 1, SPLITS, rng, _apart)
    yield Rate(f"one run each, at least {MARGIN} BLEU apart", 1, SPLITS, share)


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
    found = crossed_bootstrap(runs.statistics[arm], runs.statistics[other], rng, corpus_bleu, resamples=RESAMPLES)
    return found.p < LEVEL


def _one_run_each(runs: Runs, arm: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> bool:
    ours, theirs = runs.statistics[arm], runs.statistics[other]
    return Swaps(ours.shape[1], RESAMPLES, rng).judge(ours, theirs, corpus_bleu) < LEVEL


def _apart(runs: Runs, arm: np.ndarray, other: np.ndarray, _: np.random.Generator) -> bool:
    return abs(float(runs.scores[arm][0] - runs.scores[other][0])) >= MARGIN


def _looks(runs: Runs, arm: np.ndarray, other: np.ndarray, _: np.random.Generator) -> bool:
    differences: Sequence[float] = list(runs.scores[arm] - runs.scores[other])
    (found,) = follow([Case("greater", MARGIN, differences)], Looks(FIRST, len(differences)))
    return found.verdict.outcome in ("supported", "refuted", "real, but smaller than matters")


def _peeks(runs: Runs, arm: np.ndarray, other: np.ndarray, _: np.random.Generator) -> bool:
    differences = runs.scores[arm] - runs.scores[other]
    return any(of_differences(differences[:n]).p < LEVEL for n in range(FIRST, differences.size + 1))


def greedy(runs: Runs, size: int) -> Greedy:
    """Try the runs in random orders, each `size` of them as a change."""
    rng = np.random.default_rng(1)
    orders = np.array([rng.permutation(runs.scores) for _ in range(SPLITS)])
    tried = orders[:, : orders.shape[1] // size * size].reshape(SPLITS, -1, size).mean(axis=2)
    kept = tried.argmax(axis=1) > 0
    gained = (tried.max(axis=1) - tried[:, 0]).mean()
    return Greedy(tried.shape[1] - 1, size, float(kept.mean()), float(gained))


def draw(seen: Sequence[Rate], kept: Sequence[Greedy]) -> None:
    """Draw each share as a bar, beside a line at the nominal level; what a report asks is blue."""
    mpl.use("Agg")
    several = Counter(one.method for one in seen)
    bars = [(one.method + (f", {one.n} seeds" if several[one.method] > 1 else ""), one.rate, one.ours) for one in seen]
    bars += [
        (f"the best of {one.changes} changes of {how_many(one.size, 'run')} is kept", one.kept, False) for one in kept
    ]
    figure, axis = plt.subplots(figsize=(10, 0.32 * len(bars) + 1), layout="constrained")
    for place, (_, share, ours) in enumerate(bars):
        axis.barh(-place, 100 * share, color=OURS if ours else OTHERS)
        axis.text(100 * max(share, LEVEL) + 1, -place, f"{100 * share:.1f} %", va="center")
    axis.axvline(100 * LEVEL, color="black", linewidth=1)
    axis.set_yticks([-place for place in range(len(bars))], [name for name, *_ in bars])
    axis.set_xlim(0, 100)
    axis.set_xlabel("found a difference that is none, % of the splits")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
