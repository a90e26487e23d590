"""How often a report sees a baseline drift, where there is none and where there is one; what alternating is worth.

    python -m benchmarks.calibration.drift [quick] [drift.json]

Studies of two arms without a difference, whose runs alternate as a sweep launches them, or come one arm after the
other. The machine, or whatever else there is, changes evenly from the first run to the last, by so many standard
deviations of a run; or at once in the middle; or the first run alone is worse. The test is that of the report
(`ablab.statistics.trend`), for many studies at once; tests/statistics/test_trend.py holds it to that.
"""

import json
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from ablab.statistics import student
from ablab.statistics.student import Floats
from benchmarks.calibration.jobs import SEED
from benchmarks.calibration.worlds import paired

SEEDS = (3, 5, 10, 20)
STUDIES = 100_000
ALPHA = 0.05

Noise = Callable[[np.random.Generator, tuple[int, int]], Floats]
"""Draw the noise of runs in the order in which they ran, [studies, runs], with a standard deviation near 1."""

Shape = Callable[[Floats], Floats]
"""Return how much of the drift each run has, from its place, 0 to 1."""


def _following(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    found = rng.normal(size=shape)
    for run in range(1, shape[1]):
        found[:, run] = 0.5 * found[:, run - 1] + 0.75**0.5 * found[:, run]
    return found


NOISES: Mapping[str, Noise] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails (t with 3 df)": lambda rng, shape: rng.standard_t(3, size=shape) / 3**0.5,
    "lognormal": lambda rng, shape: (np.exp(rng.normal(size=shape)) - np.exp(0.5)) / (np.exp(2) - np.exp(1)) ** 0.5,
    "one run in ten is slower by 5 sd": lambda rng, shape: rng.normal(size=shape) + 5 * (rng.random(shape) < 0.1),
    "runs follow each other, AR(1) at 0.5": _following,
}
SHAPES: Mapping[str, Shape] = {
    "even": lambda places: places,
    "at once, in the middle": lambda places: np.where(places > 0.5, 1.0, 0.0),
    "the first run alone": lambda places: np.where(places == 0, 1.0, 0.0),
}
DRIFTS = (2.0, 4.0, 8.0)
"""In standard deviations of a run."""


def alternating(n: int) -> Floats:
    """Return the places of the runs of two arms, [2, n], as a sweep launches them: 0 3 4 7 8 and 1 2 5 6 9."""
    rounds = 2 * np.arange(n)
    is_odd = np.arange(n) % 2
    return np.stack([rounds + is_odd, rounds + 1 - is_odd]).astype(np.float64)


def in_turn(n: int) -> Floats:
    """Return the places where all runs of an arm come before those of the other."""
    return np.arange(2.0 * n).reshape(2, n)


def trends(places: Floats, scores: Floats) -> Floats:
    """Return p of the slope of scores, [studies, runs], by their places, [runs]."""
    x = places - places.mean()
    y = scores - scores.mean(axis=1, keepdims=True)
    slopes, df = y @ x / (x @ x), len(x) - 2
    left = y - slopes[:, None] * x
    with np.errstate(divide="ignore", invalid="ignore"):
        t = slopes / ((left**2).sum(axis=1) / df / (x @ x)) ** 0.5
    return student.two_sided(t, df)


def drawn(rng: np.random.Generator, noise: Noise, places: Floats, drift: float, shape: Shape, studies: int) -> Floats:
    """Return scores, [studies, 2, n], of arms that differ by nothing but the places of their runs."""
    runs = places.size
    in_order = noise(rng, (studies, runs)) + drift * shape(np.arange(runs) / (runs - 1))
    return np.asarray(in_order[:, places.astype(int)])


def measured(name: str, noise: str, shape: str, drift: float, studies: int) -> dict[str, dict[str, float]]:
    """Return rates by number of seeds: drift is seen, and arms are found to differ, which they do not."""
    found = {}
    for n in SEEDS:
        rng = np.random.default_rng([SEED, n, zlib.crc32(name.encode())])
        orders = {"alternating": alternating(n), "in turn": in_turn(n)}
        scores = {order: drawn(rng, NOISES[noise], at, drift, SHAPES[shape], studies) for order, at in orders.items()}
        seen = trends(orders["alternating"][0], scores["alternating"][:, 0]) <= ALPHA
        false = {order: float((paired(one)[:, 0] <= ALPHA).mean()) for order, one in scores.items()}
        found[f"n={n}"] = {"seen": float(seen.mean()), **{f"false, {order}": rate for order, rate in false.items()}}
    return found


def rates(studies: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return the rates of every world: no drift under each noise, then each drift under normal noise."""
    worlds = [(f"no drift, {noise}", noise, "even", 0.0) for noise in NOISES]
    worlds += [(f"{drift:g} sd, {shape}", "normal", shape, drift) for shape in SHAPES for drift in DRIFTS]
    return {name: measured(name, noise, shape, drift, studies) for name, noise, shape, drift in worlds}


def main() -> None:
    """Print the table, in percent, and write the rates."""
    words = sys.argv[1:]
    target = Path(next((word for word in words if word.endswith(".json")), "drift.json"))
    found = rates(200 if "quick" in words else STUDIES)
    heads = [f"n={n}" for n in SEEDS]
    print(f"Seen (false verdicts on a cost: alternating; in turn)\n\n| | {' | '.join(heads)} |")
    print(f"|{' --- |' * (len(heads) + 1)}")
    for name, row in found.items():
        cells = [[f"{100 * value:.1f}" for value in row[head].values()] for head in heads]
        print(f"| {name} | {' | '.join(f'{seen} ({one}; {other})' for seen, one, other in cells)} |")
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"Results: {target}")


if __name__ == "__main__":
    main()
