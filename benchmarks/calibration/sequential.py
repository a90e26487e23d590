"""Do looks after every seed err as often as they say, and what do they save?

    python -m benchmarks.calibration.sequential [quick] [sequential.json]

Whole studies of several claims: how often any verdict at its stop is false. Then single claims, by the size of the
true difference: how often they are settled, after how many seeds, how often the interval at the stop holds the truth,
and how much too large the estimate is, beside the fixed design with all seeds. Differences are in standard deviations
of the paired difference. Ends with 1 when a promise is broken by more than simulation error explains.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path

import numpy as np
from rich.progress import track

from ablab.statistics import student
from ablab.statistics.looks import Looks
from ablab.statistics.paired import of_differences
from ablab.statistics.sequential import HOPELESS, Boundary, chance_of_a_verdict, follow
from ablab.statistics.student import Floats
from ablab.statistics.verdict import Case
from benchmarks.calibration.claims import FAMILIES, Truth
from benchmarks.calibration.jobs import FAMILY, Job
from benchmarks.calibration.noise import DISTRIBUTIONS
from benchmarks.calibration.rows import Row, table

LASTS = (6, 12)
EFFECTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
PATHS = 200_000
FOLLOWED = 300
"""Paths of which the chance of a verdict is simulated at each look, to stop where there is no use to go on."""


def studies() -> Iterator[Job]:
    """Studies whose arms share a baseline, with normal noise; and with other noise, whose rates are only reported."""
    for name, truths in FAMILIES.items():
        yield from (_study(name, truths, last, "normal") for last in LASTS)
    for noise in DISTRIBUTIONS:
        if noise != "normal":
            truths = FAMILIES["6 claims, no difference anywhere"]
            yield from (_study(f"6 claims, no difference anywhere, {noise}", truths, last, noise) for last in LASTS)


def _study(name: str, truths: Sequence[Truth], last: int, noise: str) -> Job:
    def once(rng: np.random.Generator) -> dict[str, bool]:
        # Half the variance of a difference is the baseline's, which all arms share.
        scores = DISTRIBUTIONS[noise](rng, (len(truths) + 1, last)) / 2**0.5
        cases = [
            Case(truth.expect, truth.margin, truth.difference + arm - scores[0])
            for truth, arm in zip(truths, scores[1:], strict=True)
        ]
        found = follow(cases, Looks(3, last))
        return {
            "looks after every seed": any(
                truth.belied_by(one.verdict) for truth, one in zip(truths, found, strict=True)
            )
        }

    promised = {"looks after every seed": FAMILY} if noise == "normal" else {}
    return Job(name, last, 2000, once, "any verdict is false", promised)


def single(last: int, claims: int, effect: float, paths: int) -> dict[str, float]:
    """Follow one of so many claims of a study through many simulated studies."""
    looks, rng = Looks(3, last), np.random.default_rng([last, claims, int(10 * effect)])
    boundary = Boundary(looks, 0.05 / claims, "greater", 0.0)
    drawn = effect + rng.standard_normal((paths, last))
    done, peeked = np.zeros(paths, dtype=bool), np.zeros(paths, dtype=bool)
    at, estimate, covered = np.full(paths, last), np.zeros(paths), np.zeros(paths, dtype=bool)
    for n in range(looks.first, last + 1):
        mean, sd = drawn[:, :n].mean(axis=1), drawn[:, :n].std(axis=1, ddof=1)
        t = np.abs(mean) * n**0.5 / sd
        half = student.quantile(1 - looks.level(boundary.alpha / 2, n), n - 1) * sd / n**0.5
        at = np.where(done, at, n)
        estimate, covered = np.where(done, estimate, mean), np.where(done, covered, np.abs(mean - effect) <= half)
        done |= boundary.settled(mean, sd, n)
        peeked |= t > student.quantile(1 - 0.025 / claims, n - 1)
    fixed = t > student.quantile(1 - 0.025 / claims, last - 1)
    return {
        "seeds": last,
        "claims": claims,
        "effect": effect,
        "settled": float(done.mean()),
        "mean seeds": float(at.mean()),
        "covered": float(covered.mean()),
        "bias": float(estimate.mean() - effect),
        "fixed design": float(fixed.mean()),
        "looking without boundaries": float(peeked.mean()),
        **_stopping(boundary, drawn[: min(FOLLOWED, paths)]),
    }


def _stopping(boundary: Boundary, drawn: Floats) -> dict[str, float]:
    """Return what becomes of these studies, [paths, seeds], if they stop where there is no use to go on."""
    settled, seeds = 0, 0
    for values in drawn:
        for n in range(boundary.looks.first, boundary.looks.last + 1):
            found = of_differences(values[:n])
            if boundary.settled(np.array(found.difference), np.array(found.sd), n):
                settled += 1
                break
            if n < boundary.looks.last and chance_of_a_verdict(boundary, found) < HOPELESS:
                break
        seeds += n
    return {"settled, stopping": settled / len(drawn), "mean seeds, stopping": seeds / len(drawn)}


def main() -> None:
    """Print both tables, write them, and end with 1 where a promise is broken."""
    words = sys.argv[1:]
    target = Path(next((word for word in words if word.endswith(".json")), "sequential.json"))
    share = 0.0 if "quick" in words else 1.0
    rows: list[Row] = [row for job in track(list(studies()), "studies") for row in job.rows(share)]
    print(table(rows))
    paths = max(1000, round(PATHS * share))
    combinations = list(product((10, 12), (1, 4), EFFECTS))
    singles = [single(*one, paths) for one in track(combinations, "claims")]
    print(f"| {' | '.join(singles[0])} |\n|{' --- |' * len(singles[0])}")
    for one in singles:
        print(f"| {' | '.join(f'{value:.3g}' for value in one.values())} |")
    target.write_text(json.dumps({"studies": [asdict(row) for row in rows], "claims": singles}, indent=1) + "\n")
    print(f"Results: {target}")
    broken = [one for one in singles if one["covered"] < 0.95 - 2.6 * (0.05 * 0.95 / paths) ** 0.5]
    if share and (broken or not all(row.kept for row in rows)):
        sys.exit(1)


if __name__ == "__main__":
    main()
