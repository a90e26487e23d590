"""How often the interval of what a gain is worth in compute holds the truth, by seeds, slope and factor.

    python -m benchmarks.calibration.worth [quick] [worth.json]

The baseline gains `slope` standard deviations of a run from twice the compute, and the arm is worth `factor` times it.
A study has two more arms, which lend their noise. A slope of 0: the baseline has saturated, and should be said to.
`curved`: each doubling gains half of what the one before did, so that no parabola goes through all lengths.
"""

import json
import math
import sys
import zlib
from pathlib import Path

import numpy as np
from rich.progress import track

from ablab.statistics.moderated import moderated_contrast
from ablab.statistics.worth import contrast, worth
from benchmarks.calibration.jobs import SEED

STUDIES, WHOLE = 4000, 200
"""Simulated, and those of which the whole interval is computed."""

SEEDS = (3, 5, 8)
SLOPES = (1.0, 2.0, 4.0)
FACTORS = (1.0, 1.5, 2.0)


def measured(n: int, slope: float, factor: float, curved: bool, studies: int) -> dict[str, float | None]:
    """Return how often the interval holds the factor and, of the first studies, what its ends are.

    That a factor lies in the interval is that the test of it does not reject, which is quickly seen.
    """
    rng = np.random.default_rng([SEED, n, zlib.crc32(f"{slope} {factor} {curved}".encode())])

    def score(doublings: float) -> float:
        return slope * (2 * (1 - 0.5**doublings) if curved else doublings)

    means = (score(math.log2(factor)), 0.0, score(-1), score(1))
    holds = 0
    found = []
    for number in range(studies):
        arm, baseline, half, double, *others = (rng.normal(mean, 1.0, n) for mean in (*means, 0.0, 0.0))
        tested = moderated_contrast([arm, baseline, half, double], contrast(factor), others)
        holds += tested.p >= 0.05
        if number < WHOLE:
            found.append(worth(arm, baseline, half, double, others))
    low, high = np.median(np.array([(one.low, one.high) for one in found]), axis=0)
    return {
        "holds": holds / studies,
        "no upper end": float(np.mean([math.isinf(one.high) for one in found])),
        "saturated": float(np.mean([one.saturated for one in found])),
        "median low": float(low),
        "median high": float(high) if math.isfinite(high) else None,
    }


def main() -> None:
    """Print a line for each cell, and write all of them."""
    words = sys.argv[1:]
    target = Path(next((word for word in words if word.endswith(".json")), "worth.json"))
    studies = 100 if "quick" in words else STUDIES
    known = json.loads(target.read_text()) if target.exists() else {}
    found = known.get("rates", {}) if known.get("studies") == studies else {}
    cells = [(n, slope, factor, False) for n in SEEDS for slope in SLOPES for factor in FACTORS]
    cells += [(n, 0.0, 1.0, False) for n in SEEDS] + [(n, 2.0, 1.5, True) for n in SEEDS]
    for n, slope, factor, curved in track(cells, "cells", disable=not sys.stdout.isatty()):
        key = f"{n} seeds; {slope:g} sd a doubling; worth {factor:g}{'; curved' if curved else ''}"
        if key not in found:
            found[key] = measured(n, slope, factor, curved, studies)
            target.write_text(json.dumps({"studies": studies, "rates": found}, indent=1) + "\n", encoding="utf-8")
        row = found[key]
        print(f"{key:50} holds {100 * row['holds']:5.1f} %, no end {100 * row['no upper end']:5.1f} %", flush=True)
    print(f"Results: {target}")


if __name__ == "__main__":
    main()
