"""The verdicts of whole studies: how often any is false."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ablab.statistics.moderated import Moderated, moderated
from ablab.statistics.student import Floats
from ablab.statistics.verdict import Case, Expectation, Verdict, verdicts
from benchmarks.calibration.jobs import FAMILY, SEEDS, Job
from benchmarks.calibration.noise import SD


@dataclass(frozen=True)
class Truth:
    """A claim, and the difference that is true."""

    expect: Expectation
    margin: float
    difference: float

    def belied_by(self, verdict: Verdict) -> bool:
        """Whether the verdict says anything that is not so. As large as the margin is not within it."""
        within = abs(self.difference) < self.margin
        if self.expect in ("not_less", "not_greater"):
            enough = (self.difference if self.expect == "not_less" else -self.difference) > -self.margin
            return verdict.outcome == ("refuted" if enough else "supported")
        if (verdict.small and not within) or (verdict.large and within):
            return True
        if self.expect == "equal":
            different = not within and not (self.margin == 0 and self.difference == 0)
            return verdict.outcome == "refuted" and not different
        towards = self.difference if self.expect == "greater" else -self.difference
        if verdict.outcome in ("supported", "real, but smaller than matters"):
            return towards <= 0
        return verdict.outcome == "refuted" and towards >= 0


PROMISED = {"verdicts": FAMILY, "verdicts, moderated": FAMILY}

FAMILIES: dict[str, list[Truth]] = {
    "6 claims, no difference anywhere": [Truth("greater", 0, 0)] * 6,
    "10 claims, no difference, wide margins": [Truth("greater", 10, 0)] * 5 + [Truth("less", 10, 0)] * 5,
    "6 claims, differences equal to the margin": [Truth("greater", 5, 5), Truth("less", 5, 5), Truth("equal", 5, 5)]
    * 2,
    "6 claims, differences just short of the margin": [Truth("greater", 5, 4.99), Truth("less", 5, -4.99)] * 3,
    "8 claims, half large, half none": [Truth("greater", 1, 9)] * 4 + [Truth("less", 1, 0)] * 4,
    "8 claims, half large, half at the margin": [Truth("greater", 5, 50)] * 4 + [Truth("greater", 5, 5)] * 4,
    "8 claims, half real but small, half none": [Truth("greater", 20, 9)] * 4 + [Truth("greater", 20, 0)] * 4,
    "9 claims, tiny differences": [Truth("greater", 0, 0.02), Truth("less", 0, 0.02), Truth("equal", 0, 0)] * 3,
    "6 claims, worse by the margin": [Truth("not_less", 5, -5), Truth("not_greater", 5, 5)] * 3,
    "6 claims, worse by almost the margin": [Truth("not_less", 5, -4.98), Truth("not_greater", 5, 4.98)] * 3,
    "7 claims of all kinds": [
        Truth("greater", 0.5, 0.0),
        Truth("less", 0.5, 0.5),
        Truth("equal", 0.5, 0.5),
        Truth("equal", 5.0, 0.2),
        Truth("greater", 0.5, 3.0),
        Truth("less", 0.0, -3.0),
        Truth("greater", 5.0, 5.0),
    ],
}


def over_claims() -> Iterator[Job]:
    """Verdicts of whole studies. Arms share a baseline, as in most studies, or each has its own."""
    for name, truths in FAMILIES.items():
        for baseline in ("one baseline", "a baseline each"):
            for n in SEEDS:

                def once(
                    rng: np.random.Generator,
                    n: int = n,
                    truths: Sequence[Truth] = truths,
                    alone: bool = baseline != "one baseline",
                ) -> dict[str, bool]:
                    usual = rng.normal(0, SD / 2**0.5, (len(truths) if alone else 1, n))
                    noise = rng.normal(0, SD / 2**0.5, (len(truths), n))
                    arms = noise + np.array([[truth.difference] for truth in truths])
                    return {
                        "verdicts": _any_false(truths, list(arms - usual)),
                        "verdicts, moderated": _any_false(truths, _borrowing(arms, usual)),
                    }

                yield Job(
                    f"{name}, {baseline}",
                    n,
                    2000,
                    once,
                    "any verdict is false",
                    PROMISED,
                )


def _any_false(truths: Sequence[Truth], evidence: Sequence[Floats | Moderated]) -> bool:
    cases = [Case(truth.expect, truth.margin, found) for truth, found in zip(truths, evidence, strict=True)]
    return any(truth.belied_by(verdict) for truth, verdict in zip(truths, verdicts(cases), strict=True))


def _borrowing(arms: Floats, usual: Floats) -> list[Moderated]:
    """Each arm against the baseline or its own, with the help of all others."""
    compared, baselines = list(arms), list(usual) * (len(arms) if len(usual) == 1 else 1)
    every = [*compared, *{id(baseline): baseline for baseline in baselines}.values()]
    return [
        moderated(arm, baseline, [other for other in every if other is not arm and other is not baseline])
        for arm, baseline in zip(compared, baselines, strict=True)
    ]
