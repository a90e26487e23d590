"""How often the interval of what a gain is worth in compute holds the truth, by seeds, slope and factor.

    python -m benchmarks.calibration.worth [quick] [worth.json]

The baseline gains `slope` standard deviations of a run from twice the compute, and the arm is worth `factor` times it.
A study has two more arms, which lend their noise. A slope of 0: no compute gains, and no gain has an upper end.
`curved`: each doubling gains half of what the one before did, so that no parabola goes through all lengths.

And how often an arm's own curve is said to be worth more than it is, of arms whose curves gain `slope` from a doubling
wherever they are: by the validations from which on it is shown to be better, and by the first that is as good, under
each seed, as the baseline's end. Half of a run's variance is of all its validations alike, half of each by itself.
"""

import json
import math
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from ablab.statistics.moderated import moderated_contrast
from ablab.statistics.worth import as_good_from, contrast, worth
from benchmarks.calibration.jobs import SEED

STUDIES, WHOLE = 4000, 200
"""Simulated, and those of which the whole interval is computed."""

SEEDS = (3, 5, 8)
SLOPES = (1.0, 2.0, 4.0)
FACTORS = (1.0, 1.5, 2.0)
VALIDATIONS = 20
EARLY = ((0.0, 1.0), (1.0, 1.0), (1.0, 1.5), (4.0, 1.0), (4.0, 1.5))


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


def early(n: int, slope: float, factor: float, studies: int) -> dict[str, float]:
    """Return how often a curve says that its arm is worth more than `factor`.

    `by luck`: how often the first validation as good as the baseline's end does, under each seed.
    """
    rng = np.random.default_rng([SEED, n, zlib.crc32(f"early {slope} {factor}".encode())])
    lengths = np.arange(1, VALIDATIONS + 1) / VALIDATIONS
    arms = np.array([factor, 1.0, 1.0, 1.0])[:, None, None]
    said, by_luck = [], 0
    for _ in range(studies):
        of_runs, of_each = rng.normal(0, 0.5**0.5, (4, 1, n)), rng.normal(0, 0.5**0.5, (4, VALIDATIONS, n))
        arm, baseline, *others = slope * np.log2(arms * lengths[:, None]) + of_runs + of_each
        place = as_good_from(arm, baseline[-1], [other[-1] for other in others])
        said.append(0.0 if place is None else 1 / lengths[place])
        reached = arm >= baseline[-1]
        first = np.exp(np.log(lengths[reached.argmax(axis=0)]).mean())
        by_luck += bool(reached.any(axis=0).all()) and bool(1 / first > factor + 1e-9)
    return {"too much": float(np.mean([one > factor + 1e-9 for one in said])), "by luck": by_luck / studies}


def main() -> None:
    """Print a line for each cell, and write all of them."""
    words = sys.argv[1:]
    target = Path(next((word for word in words if word.endswith(".json")), "worth.json"))
    studies = 100 if "quick" in words else STUDIES
    known = json.loads(target.read_text()) if target.exists() else {}
    found = known.get("rates", {}) if known.get("studies") == studies else {}
    cells = [(n, slope, factor, False) for n in SEEDS for slope in SLOPES for factor in FACTORS]
    cells += [(n, 0.0, 1.0, False) for n in SEEDS] + [(n, 2.0, 1.5, True) for n in SEEDS]
    told = sys.stdout.isatty()
    for n, slope, factor, curved in track(cells, "cells", disable=not told):
        key = f"{n} seeds; {slope:g} sd a doubling; worth {factor:g}{'; curved' if curved else ''}"
        if key not in found:
            found[key] = measured(n, slope, factor, curved, studies)
            _write(target, studies, found, known.get("curves", {}))
        row = found[key]
        print(f"{key:50} holds {100 * row['holds']:5.1f} %, no end {100 * row['no upper end']:5.1f} %", flush=True)
    curves = known.get("curves", {}) if known.get("studies") == studies else {}
    for n, slope, factor in track([(n, *cell) for n in SEEDS for cell in EARLY], "curves", disable=not told):
        key = f"{n} seeds; {slope:g} sd a doubling; worth {factor:g}"
        curves[key] = row = curves.get(key) or early(n, slope, factor, studies)
        _write(target, studies, found, curves)
        print(f"{key:50} too much {100 * row['too much']:5.1f} %, by luck {100 * row['by luck']:5.1f} %", flush=True)
    print(f"Results: {target}")


def _write(target: Path, studies: int, rates: dict[str, Any], curves: dict[str, Any]) -> None:
    content = {"studies": studies, "rates": rates, "curves": curves}
    target.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
