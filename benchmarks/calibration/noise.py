"""Simulated test sets: BLEU's statistics of arms whose truth is known.

Sizes are those of real runs, two seeds each of five recipes on Multi30k (en-de, 1,000 sentences of 11 words, BLEU 30 to
37): a run's BLEU varies by 0.80 with the sentences; the difference of two seeds of one recipe by 0.43 with the
sentences and by 0.64 in all; of two recipes by 0.47 with the sentences.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SD = 0.64
"""Of the difference of two seeds of one recipe, in BLEU."""

LENGTH = 11
"""Words of a sentence."""

Draw = Callable[[np.random.Generator, tuple[int, ...]], npt.NDArray[np.float64]]

DISTRIBUTIONS: dict[str, Draw] = {
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
