"""Make the boundaries of `ablab.statistics.looks`, by simulation, once.

    python -m benchmarks.calibration.boundaries [paths=20000000] [boundaries.json]

A path is the series of one-sided p-values of the t test after each seed, without any difference. Its distribution
does not depend on the size of the noise, so one table holds for every metric. For each pair of first and last look,
the table has the value that the smallest p_n last / n of a path stays at or below with each chance of an error.
"""

import json
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.progress import track
from scipy.special import stdtr

from ablab.statistics.looks import FEWEST, LATEST_FIRST, MOST, TABLE
from ablab.statistics.student import Floats

ALPHAS = np.geomspace(0.0005, 0.1, 24)
"""One-sided chances of an error over all looks. Fifty claims at 5 % need 0.0005 on each side."""

BINS = np.linspace(np.log(1e-8), 0.0, 60_001)
"""Edges in log p: bins of 0.03 %, in which paths are counted instead of kept."""

BLOCK = 200_000
SEED = 20261123


def main() -> None:
    """Simulate, and write the table."""
    words = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    target = Path(next((word for word in sys.argv[1:] if word.endswith(".json")), str(TABLE)))
    paths = int(words.get("paths", 20_000_000))
    rng, firsts = np.random.default_rng(SEED), range(FEWEST, LATEST_FIRST + 1)
    counts = {first: np.zeros((MOST - first, len(BINS) + 1), dtype=np.int64) for first in firsts}
    for _ in track(range(paths // BLOCK), "paths"):
        weighted = np.log(_p_values(rng) / np.arange(2, MOST + 1))
        for first in firsts:
            least = np.minimum.accumulate(weighted[:, first - 2 :], axis=1)[:, 1:]
            for column, last in enumerate(range(first + 1, MOST + 1)):
                counts[first][column] += np.bincount(
                    np.searchsorted(BINS, least[:, column] + np.log(last)), minlength=len(BINS) + 1
                )
    content = {
        "made_by": f"python -m benchmarks.calibration.boundaries paths={paths}",
        "alphas": [float(f"{alpha:.8g}") for alpha in ALPHAS],
        "thresholds": {
            str(first): {str(last): _quantiles(counts[first][last - first - 1]) for last in range(first + 1, MOST + 1)}
            for first in firsts
        },
    }
    target.write_text(json.dumps(content) + "\n", encoding="utf-8")
    print(f"Results: {target}")


def _p_values(rng: np.random.Generator) -> Floats:
    """Return one-sided p-values [BLOCK, MOST - 1] after 2 seeds and more."""
    n = np.arange(1, MOST + 1)
    drawn = rng.standard_normal((BLOCK, MOST))
    means = np.cumsum(drawn, axis=1) / n
    squares = np.cumsum(drawn**2, axis=1) - n * means**2
    t = means[:, 1:] / np.sqrt(squares[:, 1:] / (n[1:] - 1) / n[1:])
    return np.asarray(stdtr(n[1:] - 1, -t))


def _quantiles(counts: npt.NDArray[np.int64]) -> list[float]:
    """Return the lower edge of each quantile's bin: a boundary that errs a little less, not more."""
    share = np.cumsum(counts) / counts.sum()
    return [float(f"{np.exp(BINS[max(np.searchsorted(share, alpha) - 1, 0)]):.6g}") for alpha in ALPHAS]


if __name__ == "__main__":
    main()
