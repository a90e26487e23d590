"""Arms that are equally good: each rejection is false."""

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np

from ablab.statistics import resampling
from ablab.statistics.paired import paired_difference
from ablab.statistics.resampling import Swaps
from ablab.transformer.data.scoring import corpus_bleu
from benchmarks.calibration.jobs import NULL, RESAMPLES, SEEDS, Job
from benchmarks.calibration.noise import DISTRIBUTIONS, Draw, Noise, simulated


def over_seeds() -> Iterator[Job]:
    """The paired t test, with scores drawn as they come out."""
    for name, draw in DISTRIBUTIONS.items():
        for n in (2, *SEEDS):

            def once(rng: np.random.Generator, n: int = n, draw: Draw = draw) -> dict[str, bool]:
                arm, baseline = draw(rng, (2, n))
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
                with patch.object(resampling, "MINIMUM_SEEDS", 2):
                    found = resampling.crossed_bootstrap(arm, baseline, rng, corpus_bleu, resamples=RESAMPLES)
                scores = corpus_bleu(np.stack([arm, baseline]).sum(axis=2))
                return {"crossed bootstrap": found.p <= 0.05, "paired t": paired_difference(*scores).p <= 0.05}

            yield Job(name, n, 1200, once, "rejects a true null", promised if n > 2 else {})


def over_sentences_alone() -> Iterator[Job]:
    """Approximate randomisation, between runs that are equally good: nothing but the sentences varies."""
    for n in (1, *SEEDS):

        def once(rng: np.random.Generator, n: int = n) -> dict[str, bool]:
            arm, baseline = simulated(rng, n, 1000, Noise(seed=0.0))
            return {"approximate randomisation": Swaps(1000, 399, rng).judge(arm, baseline, corpus_bleu) <= 0.05}

        yield Job("equally good runs", n, 2000, once, "rejects a true null", {"approximate randomisation": NULL})
