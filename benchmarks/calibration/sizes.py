"""How often a verdict is false where the noise of few arms differs in size: the worst mixtures that were found.

    python -m benchmarks.calibration.sizes [studies=100000] [sizes.json]

Each study compares all other arms with the first, without any difference, by the moderated t test.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.calibration.jobs import SEED, SEEDS
from benchmarks.calibration.worlds import borrowing, false_verdicts

SIZES: Sequence[Sequence[float]] = (
    (1, 1, 1),
    (0.3, 1, 1),
    (0.2, 1, 1),
    (0.1, 1, 1),
    (0.01, 1, 1),
    (0.1, 1, 1, 1, 1),
    (0.1, 0.1, 1, 1, 1),
    (5, 1),
    (5, 1, 1),
    (1, 5, 1),
    (1.146, 0.159, 0.564, 0.309, 0.379),
)
"""Standard deviations of a run, of the baseline first."""


def rates(sizes: Sequence[float], seeds: int, studies: int) -> tuple[float, float]:
    """Return how often any verdict of a study is false, and how often the first claim alone would be."""
    rng = np.random.default_rng([SEED, seeds, len(sizes)])
    p = borrowing(rng.normal(size=(studies, len(sizes), seeds)) * np.asarray(sizes)[:, None])
    return float(false_verdicts(p).mean()), float((p[:, 0] <= 0.05).mean())


def main() -> None:
    """Print the rates in percent, and write them."""
    words = sys.argv[1:]
    studies = int(next((word[8:] for word in words if word.startswith("studies=")), "100000"))
    target = Path(next((word for word in words if word.endswith(".json")), "sizes.json"))
    found = {}
    print(f"| standard deviations | {' | '.join(f'n={n}' for n in SEEDS)} |\n|{' --- |' * (len(SEEDS) + 1)}")
    for sizes in SIZES:
        name = ", ".join(f"{size:g}" for size in sizes)
        found[name] = {f"n={n}": rates(sizes, n, studies) for n in SEEDS}
        print(
            f"| {name} | {' | '.join(f'{100 * a:.1f} / {100 * b:.1f}' for a, b in found[name].values())} |", flush=True
        )
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"Results: {target}")


if __name__ == "__main__":
    main()
