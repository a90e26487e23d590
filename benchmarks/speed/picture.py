"""The races' results as one picture for the docs.

python -m benchmarks.speed.picture
"""

import json
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parents[1] / "results"
PICTURE = Path(__file__).parents[2] / "docs" / "speed.png"
OURS, OTHERS, LIMIT = "#0072B2", "#9a9a9a", "#dddddd"
SEARCH = ", beam 4"
MOST = 12_000
"""Where the axis of training ends: a bar that goes on says how far."""


def main() -> None:
    """Three panels of bars."""
    mpl.use("Agg")
    figure, axes = plt.subplots(1, 3, figsize=(16, 3.6), layout="constrained")
    for axis, name, unit in (
        (axes[0], "training_small", "target tokens/s in training"),
        (axes[1], "decoding_small", "sentences/s in decoding" + SEARCH),
        (axes[2], "sweeps", "seconds, four runs of five steps"),
    ):
        medians: dict[str, float] = json.loads((RESULTS / f"{name}.json").read_text())["medians"]
        if name == "decoding_small":
            medians = {system.removesuffix(SEARCH): value for system, value in medians.items() if SEARCH in system}
        less_is_better = name == "sweeps"
        _bars(axis, dict(sorted(medians.items(), key=lambda item: item[1], reverse=less_is_better)), unit)
    figure.savefig(PICTURE, dpi=110)
    print(f"Results: {PICTURE}")


def _bars(axis: "plt.Axes", medians: dict[str, float], unit: str) -> None:
    end = min(MOST, 1.18 * max(medians.values()))
    for place, (name, value) in enumerate(medians.items()):
        colour = OURS if name.startswith("ablab") else LIMIT if "alone" in name else OTHERS
        axis.barh(place, min(value, end), color=colour)
        inside = value > 0.85 * end
        axis.text(min(value, end) + (-0.01 if inside else 0.01) * end, place, f"{value:,.0f}", va="center",
                  ha="right" if inside else "left")  # fmt: skip
    axis.set_yticks(range(len(medians)), list(medians))
    axis.set_xlim(0, end)
    axis.locator_params(axis="x", nbins=5)
    axis.set_xlabel(unit)
    axis.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
