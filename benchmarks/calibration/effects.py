"""Arms that differ: how often that is found, and whether intervals hold the truth."""

from collections.abc import Callable, Iterator

import numpy as np

from ablab.statistics import resampling
from ablab.statistics.paired import Paired, of_differences, paired_difference
from ablab.statistics.power import detectable_difference, two_sided_power
from ablab.statistics.verdict import Case, verdicts
from ablab.transformer.data.scoring import corpus_bleu
from benchmarks.calibration.jobs import NULL, RESAMPLES, SEED, SEEDS, Job
from benchmarks.calibration.noise import SD, Noise, simulated


def planted() -> Iterator[Job]:
    """Effects of the size that `power` says are found four times in five."""
    for n in SEEDS:
        effect = detectable_difference(SD / n**0.5, n - 1)

        def once(rng: np.random.Generator, n: int = n, effect: float = effect) -> dict[str, bool]:
            drawn = rng.normal(effect, SD, n)
            (verdict,) = verdicts([Case("greater", 0.0, drawn)])
            return {"paired t": of_differences(drawn).p <= 0.05, "verdicts": verdict.outcome == "supported"}

        ways = {"paired t": (0.79, 0.81), "verdicts": (0.79, 0.81)}
        yield Job(f"effect of {effect:.2f} BLEU, sd {SD}", n, 10_000, once, "finds it (stated power 0.80)", ways)


Both = Callable[[np.random.Generator], tuple[Paired, resampling.Crossed]]


def planted_in_words(share: float) -> Iterator[Job]:
    """The same from words to verdict; what is true, and how it varies, from a larger simulation of the same kind."""
    noise = Noise()
    for n, gap in ((3, 0.042), (5, 0.0224), (10, 0.0128)):
        rng = np.random.default_rng([SEED, n])
        draws = [simulated(rng, 50, 1000, noise, gap).sum(axis=2) for _ in range(max(2, round(20 * share)))]
        scores = corpus_bleu(np.stack(draws))
        drawn = scores[:, 0] - scores[:, 1]
        truth, sd = float(drawn.mean()), float((drawn.var(axis=1, ddof=1).mean()) ** 0.5)
        stated = two_sided_power(truth, sd / n**0.5, n - 1)

        def both(rng: np.random.Generator, n: int = n, gap: float = gap) -> tuple[Paired, resampling.Crossed]:
            arm, baseline = simulated(rng, n, 1000, noise, gap)
            return (
                paired_difference(*corpus_bleu(np.stack([arm, baseline]).sum(axis=2))),
                resampling.crossed_bootstrap(arm, baseline, rng, corpus_bleu, resamples=RESAMPLES),
            )

        def found(rng: np.random.Generator, both: Both = both) -> dict[str, bool]:
            paired, crossed = both(rng)
            return {"paired t": paired.p <= 0.05, "crossed bootstrap": crossed.p <= 0.05}

        def missed(rng: np.random.Generator, both: Both = both, truth: float = truth) -> dict[str, bool]:
            paired, crossed = both(rng)
            return {
                "paired t": paired.at(0.95).excludes(truth),
                "crossed bootstrap": crossed.interval.excludes(truth),
            }

        name = f"{truth:.2f} BLEU planted in the words"
        ways = {"paired t": (stated - 0.03, stated + 0.03)}
        yield Job(name, n, 600, found, f"finds it (stated power {stated:.2f})", ways)
        yield Job(name, n, 600, missed, "interval misses the truth", {"paired t": NULL, "crossed bootstrap": NULL})
