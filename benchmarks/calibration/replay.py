"""What looks after every seed would have said, and when, on the runs of reports that are there.

    python -m benchmarks.calibration.replay [docs/results]

Claims about a score are followed from 3 seeds to all that the report has, beside the verdict of the report, unless it
could not test them, or its study added seeds. The runs of a single arm are a placebo: they are split at random into two
arms, and each verdict on these is false.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ablab.files import read_json
from ablab.statistics.looks import Looks
from ablab.statistics.paired import of_differences
from ablab.statistics.sequential import follow
from ablab.statistics.verdict import Case, Expectation
from ablab.text import aligned

FOLDER = Path(__file__).parents[2] / "docs" / "results"
SPLITS = 20_000

Report = dict[str, Any]
"""A report.json as it stands: those of earlier versions lack fields that are read today."""


def main() -> None:
    """Print a table of claims, and the rates of the placebo."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    rows = [["study", "claim", "its verdict, all seeds", "looks from 3 seeds on", "seeds"]]
    for path in sorted(folder.glob("*/report.json")):
        document = read_json(path)
        if len(document["arms"]) == 1:
            print("\n".join(_placebo(document)))
        elif not any(claim.get("followed") for claim in document["claims"]):  # those were looked at so
            rows += _replayed(path.parent.name, document)
    print("\n".join(aligned(rows, left=4)))


def _replayed(name: str, document: Report) -> Iterator[list[str]]:
    claims = [(claim, found) for claim in document["claims"] if (found := _differences(document, claim)) is not None]
    if not claims or len(claims[0][1]) < 4:
        return
    seeds = len(claims[0][1])
    cases = [Case(_expectation(claim, document), claim["margin"], differences) for claim, differences in claims]
    for (claim, _), followed in zip(claims, follow(cases, Looks(3, seeds)), strict=True):
        said = "open" if followed.verdict.outcome == "inconclusive" else followed.verdict.outcome
        words = " ".join((claim["arm"], claim["expect"], claim["baseline"], "in", claim["metric"]))
        yield [name, words, claim["outcome"], said, f"{followed.verdict.n} of {seeds}"]


def _loss(run: Report) -> float | None:
    """Return the validation loss of a run; older reports have another name for it."""
    found: float | None = run.get("loss", run.get("valid_loss"))
    return found


def _differences(document: Report, claim: Report) -> list[float] | None:
    """Return the differences by seed of a claim about a score that the report lists for each run."""
    if (
        claim["outcome"] == "not testable"
        or claim["metric"] not in (document["metric"], "valid_loss")
        or claim["title"] != claim["about"]
    ):
        return None
    arms = {arm["name"]: arm for arm in document["arms"]}
    if claim["arm"] not in arms or claim["baseline"] not in arms:
        return None
    sides = []
    for name in (claim["arm"], claim["baseline"]):
        runs = sorted(arms[name]["runs"], key=lambda run: run["seed"])
        sides.append([_loss(run) if claim["metric"] == "valid_loss" else run["score"] for run in runs])
    if any(value is None for side in sides for value in side):
        return None
    return [float(one - other) for one, other in zip(*sides, strict=True)]


def _expectation(claim: Report, document: Report) -> Expectation:
    if claim["expect"] == "not_worse":
        return "not_less" if document["higher_is_better"] else "not_greater"
    expect: Expectation = claim["expect"]
    return expect


def _placebo(document: Report) -> Iterator[str]:
    """Yield the shares of random splits of one arm in which something is found."""
    scores = np.array([run["score"] for run in document["arms"][0]["runs"]], dtype=float)
    half, rng = len(scores) // 2, np.random.default_rng(0)
    looks = Looks(3, half)
    followed, peeked, fixed = 0, 0, 0
    for _ in range(SPLITS):
        arm, baseline = rng.permutation(scores)[: 2 * half].reshape(2, half)
        differences = arm - baseline
        p = [of_differences(differences[:n]).p for n in range(looks.first, half + 1)]
        followed += follow([Case("greater", 0.0, differences)], looks)[0].state == "settled"
        peeked += min(p) <= 0.05
        fixed += p[-1] <= 0.05
    yield f"{document['name']}: {len(scores)} runs of one arm, split into halves of {half} {SPLITS:,} times; found:"
    yield f"  looks after each of 3 to {half} seeds, with boundaries: {followed / SPLITS:.3f}"
    yield f"  the same looks at 5 % each: {peeked / SPLITS:.3f}"
    yield f"  one look at all {half} seeds: {fixed / SPLITS:.3f}"


if __name__ == "__main__":
    main()
