"""Do the tests err as often as they say? Simulated studies whose truth is known, put to every method of the report.

    python benchmarks/calibration.py [quick] [calibration.json]

A Markdown table, and the same rows as JSON. `quick`: three repetitions of each, to see that it works. Ends with 1
when a row that promises a range is outside it by more than simulation error (2.6 standard errors) explains.

Sizes are those of real runs, two seeds each of five recipes on Multi30k (en-de, 1,000 sentences of 11 words, BLEU 30 to
37): a run's BLEU varies by 0.80 with the sentences; the difference of two seeds of one recipe by 0.43 with the
sentences and by 0.64 in all; of two recipes by 0.47 with the sentences.
"""

import json
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from rich.progress import Progress

from ablab.statistics import bootstrap
from ablab.statistics.bleu import corpus_bleu
from ablab.statistics.paired import Paired, of_differences, paired_difference
from ablab.statistics.power import detectable_effect, paired_power
from ablab.statistics.randomisation import approximate_randomisation
from ablab.statistics.verdict import Case, Expectation, Verdict, verdicts

SEED = 2016
SEEDS = (3, 5, 10)
RESAMPLES = 300
"""Enough for a variance: its error of 8 % is small beside that of a variance over 10 seeds, 47 %."""

LENGTH = 11
DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], npt.NDArray[np.float64]]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    # Three degrees of freedom, scaled to variance 1: the kurtosis is infinite.
    "heavy tails (t3)": lambda rng, shape: rng.standard_t(3, size=shape) / 3**0.5,
    # One run in ten falls short by 3 sd: a seed that nearly failed.
    "one in ten poor": lambda rng, shape: (rng.normal(size=shape) - 3 * (rng.random(shape) < 0.1) + 0.3) / 1.81**0.5,
}


@dataclass(frozen=True)
class Noise:
    """How simulated arms vary. A word is right if the skill of the run and its own ease exceed 0.

    Ease has variance 1 in all. seed: sd of skill over runs; 0.0067 is 0.34 BLEU. interaction: variance of a word's
    ease from run to run; arm: from arm to arm, the same for all its seeds. distribution: of skill over runs.
    """

    seed: float = 0.0067
    interaction: float = 0.025
    arm: float = 0.0
    distribution: str = "normal"


def simulated(
    rng: np.random.Generator, seeds: int, sentences: int, noise: Noise, gap: float = 0.0
) -> npt.NDArray[np.float64]:
    """BLEU's statistics, [2, seeds, sentences, 10], of two arms; the first is the better one by `gap` in skill."""
    skill = 0.43 + noise.seed * DISTRIBUTIONS[noise.distribution](rng, (2, seeds)) + np.array([[gap], [0.0]])

    def ease(variance: float, *shape: int) -> npt.NDArray[np.float32]:
        return np.float32(variance**0.5) * rng.standard_normal(shape, dtype=np.float32)

    shared = ease(0.08, sentences, 1) + ease(0.92 - noise.interaction - noise.arm, sentences, LENGTH)
    if noise.arm:
        shared = shared + ease(noise.arm, 2, 1, sentences, LENGTH)
    right = ease(noise.interaction, 2, seeds, sentences, LENGTH)
    right += shared
    right += skill[..., None, None].astype(np.float32)
    return counted(right > 0)


def counted(right: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """BLEU's statistics of hypotheses as long as their references, from which words are right: [..., length]."""
    length = right.shape[-1]
    counts = np.empty((*right.shape[:-1], 10))
    counts[..., :2] = length
    streak = right
    for n in range(4):
        counts[..., 2 + n] = np.count_nonzero(streak, axis=-1)
        counts[..., 6 + n] = length - n
        streak = streak[..., :-1] & right[..., n + 1 :]
    return counts


@dataclass(frozen=True)
class Row:
    """One rate. `promised`: the range it must lie in, or None where it is only reported."""

    method: str
    scenario: str
    n: int
    what: str
    rate: float
    repetitions: int
    promised: tuple[float, float] | None

    @property
    def error(self) -> float:
        """Standard error of the rate."""
        return (max(self.rate * (1 - self.rate), 1 / self.repetitions) / self.repetitions) ** 0.5

    @property
    def kept(self) -> bool:
        """Whether the range holds, but for simulation error."""
        slack = 2.6 * self.error
        return self.promised is None or self.promised[0] - slack <= self.rate <= self.promised[1] + slack


NULL = (0.03, 0.07)
FAMILY = (0.0, 0.05)


@dataclass(frozen=True)
class Job:
    """A simulation: what it is called, how often it is done in full, and the outcomes of one repetition by method."""

    scenario: str
    n: int
    repetitions: int
    once: Callable[[np.random.Generator], dict[str, bool]]
    what: str
    promised: dict[str, tuple[float, float]]


def over_seeds() -> Iterator[Job]:
    """The paired t test, with scores drawn as they come out."""
    for name, draw in DISTRIBUTIONS.items():
        for n in (2, *SEEDS):

            def once(rng: np.random.Generator, n: int = n, draw: object = draw) -> dict[str, bool]:
                arm, baseline = draw(rng, (2, n))  # type: ignore[operator]
                return {"paired t": paired_difference(arm, baseline).p <= 0.05}

            promised = {"paired t": NULL} if name == "normal" else {}
            yield Job(f"{name} seed noise", n, 20_000, once, "rejects a true null", promised)


def over_sentences() -> Iterator[Job]:
    """Whole test sets, with BLEU from their statistics; the two arms are alike, so that each rejection is false."""
    differ = 0.0107
    both, crossed = {"paired t": NULL, "crossed bootstrap": NULL}, {"crossed bootstrap": NULL}
    scenarios: list[tuple[str, Noise, int, dict[str, tuple[float, float]]]] = [
        ("arms alike on each sentence", Noise(), 1000, both),
        ("arms differ by sentence", Noise(arm=differ), 1000, crossed),
        ("arms differ much by sentence", Noise(arm=10 * differ), 1000, crossed),
        ("arms differ by sentence, 200 sentences", Noise(arm=differ), 200, crossed),
        ("arms differ by sentence, heavy tails (t3)", Noise(arm=differ, distribution="heavy tails (t3)"), 1000, {}),
    ]
    for name, noise, sentences, promised in scenarios:
        for n in (2, *SEEDS) if noise == Noise(arm=differ) else SEEDS:

            def once(
                rng: np.random.Generator, n: int = n, noise: Noise = noise, sentences: int = sentences
            ) -> dict[str, bool]:
                arm, baseline = simulated(rng, n, sentences, noise)
                # Two seeds are refused; here it is shown why.
                with patch.object(bootstrap, "MINIMUM_SEEDS", 2):
                    found = bootstrap.crossed_bootstrap(arm, baseline, rng, resamples=RESAMPLES)
                scores = corpus_bleu(np.stack([arm, baseline]).sum(axis=2))
                return {"crossed bootstrap": found.p <= 0.05, "paired t": paired_difference(*scores).p <= 0.05}

            yield Job(name, n, 1200, once, "rejects a true null", promised if n > 2 else {})


def over_sentences_alone() -> Iterator[Job]:
    """Approximate randomisation, between runs that are equally good: nothing but the sentences varies."""
    for n in (1, *SEEDS):

        def once(rng: np.random.Generator, n: int = n) -> dict[str, bool]:
            arm, baseline = simulated(rng, n, 1000, Noise(seed=0.0))
            return {"approximate randomisation": approximate_randomisation(arm, baseline, rng, trials=399).p <= 0.05}

        yield Job("equally good runs", n, 2000, once, "rejects a true null", {"approximate randomisation": NULL})


@dataclass(frozen=True)
class Truth:
    """A claim, and the difference that is true."""

    expect: Expectation
    margin: float
    difference: float

    def belied_by(self, verdict: Verdict) -> bool:
        """Whether the verdict says anything that is not so. As large as the margin is not within it."""
        within = abs(self.difference) < self.margin
        if verdict.small and not within:
            return True
        if self.expect == "equal":
            different = not within and not (self.margin == 0 and self.difference == 0)
            return verdict.outcome == "refuted" and not different
        towards = self.difference if self.expect == "greater" else -self.difference
        if verdict.outcome in ("supported", "real, but smaller than matters"):
            return towards <= 0
        return verdict.outcome == "refuted" and towards >= 0


SD = 0.64
FAMILIES: dict[str, list[Truth]] = {
    "6 claims, no difference anywhere": [Truth("greater", 0, 0)] * 6,
    "10 claims, no difference, wide margins": [Truth("greater", 10, 0)] * 5 + [Truth("less", 10, 0)] * 5,
    "6 claims, differences equal to the margin": [Truth("greater", 5, 5), Truth("less", 5, 5), Truth("equal", 5, 5)]
    * 2,
    "8 claims, half large, half none": [Truth("greater", 1, 9)] * 4 + [Truth("less", 1, 0)] * 4,
    "8 claims, half large, half at the margin": [Truth("greater", 5, 50)] * 4 + [Truth("greater", 5, 5)] * 4,
    "8 claims, half real but small, half none": [Truth("greater", 20, 9)] * 4 + [Truth("greater", 20, 0)] * 4,
    "9 claims, tiny differences": [Truth("greater", 0, 0.02), Truth("less", 0, 0.02), Truth("equal", 0, 0)] * 3,
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
                    noise = rng.normal(0, SD / 2**0.5, (len(truths), n)) - usual
                    cases = [Case(t.expect, t.margin, t.difference + e) for t, e in zip(truths, noise, strict=True)]
                    judged = zip(truths, verdicts(cases), strict=True)
                    return {"verdicts": any(truth.belied_by(verdict) for truth, verdict in judged)}

                yield Job(f"{name}, {baseline}", n, 2000, once, "any verdict is false", {"verdicts": FAMILY})


def planted() -> Iterator[Job]:
    """Effects of the size that `power` says are found four times in five."""
    for n in SEEDS:
        effect = detectable_effect(SD, n)

        def once(rng: np.random.Generator, n: int = n, effect: float = effect) -> dict[str, bool]:
            drawn = rng.normal(effect, SD, n)
            (verdict,) = verdicts([Case("greater", 0.0, drawn)])
            return {"paired t": of_differences(drawn).p <= 0.05, "verdicts": verdict.outcome == "supported"}

        ways = {"paired t": (0.79, 0.81), "verdicts": (0.79, 0.81)}
        yield Job(f"effect of {effect:.2f} BLEU, sd {SD}", n, 10_000, once, "finds it (stated power 0.80)", ways)


Both = Callable[[np.random.Generator], tuple[Paired, bootstrap.Crossed]]


def planted_in_words(share: float) -> Iterator[Job]:
    """The same from words to verdict; what is true, and how it varies, from a larger simulation of the same kind."""
    noise = Noise()
    for n, gap in ((3, 0.042), (5, 0.0224), (10, 0.0128)):
        rng = np.random.default_rng([SEED, n])
        draws = [simulated(rng, 50, 1000, noise, gap).sum(axis=2) for _ in range(max(2, round(20 * share)))]
        scores = corpus_bleu(np.stack(draws))
        drawn = scores[:, 0] - scores[:, 1]
        truth, sd = float(drawn.mean()), float((drawn.var(axis=1, ddof=1).mean()) ** 0.5)
        stated = paired_power(truth, sd, n)

        def both(rng: np.random.Generator, n: int = n, gap: float = gap) -> tuple[Paired, bootstrap.Crossed]:
            arm, baseline = simulated(rng, n, 1000, noise, gap)
            return (
                paired_difference(*corpus_bleu(np.stack([arm, baseline]).sum(axis=2))),
                bootstrap.crossed_bootstrap(arm, baseline, rng, resamples=RESAMPLES),
            )

        def found(rng: np.random.Generator, both: Both = both) -> dict[str, bool]:
            paired, crossed = both(rng)
            return {"paired t": paired.p <= 0.05, "crossed bootstrap": crossed.p <= 0.05}

        def missed(rng: np.random.Generator, both: Both = both, truth: float = truth) -> dict[str, bool]:
            paired, crossed = both(rng)
            return {
                "paired t": paired.interval.excludes(truth),
                "crossed bootstrap": crossed.interval.excludes(truth),
            }

        name = f"{truth:.2f} BLEU planted in the words"
        ways = {"paired t": (stated - 0.03, stated + 0.03)}
        yield Job(name, n, 600, found, f"finds it (stated power {stated:.2f})", ways)
        yield Job(name, n, 600, missed, "interval misses the truth", {"paired t": NULL, "crossed bootstrap": NULL})


def run(share: float, progress: Progress) -> Iterator[Row]:
    """All rows, with this share of the repetitions."""
    jobs = [
        *(job for make in (over_seeds, over_sentences, over_sentences_alone, over_claims, planted) for job in make()),
        *planted_in_words(share),
    ]
    bar = progress.add_task("calibration", total=len(jobs))
    for job in jobs:
        # A stream of its own: adding a row changes no other.
        rng = np.random.default_rng([SEED, job.n, zlib.crc32(f"{job.scenario}, {job.what}".encode())])
        repetitions = max(3, round(job.repetitions * share))
        progress.update(bar, description=f"{job.scenario}, n={job.n}")
        outcomes = [job.once(rng) for _ in range(repetitions)]
        for method in outcomes[0]:
            rate = float(np.mean([outcome[method] for outcome in outcomes]))
            yield Row(method, job.scenario, job.n, job.what, rate, repetitions, job.promised.get(method))
        progress.advance(bar)


def table(rows: Sequence[Row]) -> str:
    """Markdown: a line for each scenario and method, a column for each number of seeds."""
    numbers = sorted({row.n for row in rows})
    lines = [
        f"| {' | '.join(['what', 'method', 'scenario', *(f'n={n}' for n in numbers), 'promised'])} |",
        f"| {' | '.join(['---'] * (4 + len(numbers)))} |",
    ]
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.what, row.method, row.scenario), []).append(row)
    for key, found in groups.items():
        cells = {row.n: f"{row.rate:.3f}" + ("" if row.kept else " **!**") for row in found}
        promised = next((f"{row.promised[0]:.2f} to {row.promised[1]:.2f}" for row in found if row.promised), "")
        lines.append(f"| {' | '.join([*key, *(cells.get(n, '') for n in numbers), promised])} |")
    return "\n".join(lines)


def main() -> None:
    """Both outputs, and the exit code."""
    words = sys.argv[1:]
    target = Path(next((word for word in words if word.endswith(".json")), "calibration.json"))
    with Progress() as progress:
        rows = list(run(0.0 if "quick" in words else 1.0, progress))
    target.write_text(
        json.dumps([{**asdict(row), "error": row.error, "kept": row.kept} for row in rows], indent=1) + "\n",
        encoding="utf-8",
    )
    print(table(rows))
    if "quick" not in words and not all(row.kept for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
