"""Made-up test sets: what sacrebleu would count on them, and noise of realistic size."""

import numpy as np
import numpy.typing as npt

LENGTH = 12


def simulated(
    rng: np.random.Generator,
    seeds: int,
    sentences: int,
    quality: float = 0.47,
    gap: float = 0.0,
    seed_noise: float = 0.01,
) -> npt.NDArray[np.float64]:
    """Statistics [2, seeds, sentences, 10] of two arms: a word is right if luck and ease exceed 0."""
    ease = rng.normal(0, 0.9, (sentences, LENGTH))
    skill = quality + rng.normal(0, seed_noise, (2, seeds)) + np.array([[gap], [0.0]])
    right = skill[..., None, None] + ease + rng.normal(0, 0.45, (2, seeds, sentences, LENGTH)) > 0
    return counted(right)


def counted(right: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """BLEU's statistics of hypotheses as long as their references, from which words are right: [..., length]."""
    length = right.shape[-1]
    matches, streak = [], right
    for order in range(4):
        matches.append(streak.sum(axis=-1))
        streak = streak[..., 1:] & right[..., order + 1 :]
    ones = np.ones(right.shape[:-1])
    return np.stack([length * ones, length * ones, *matches, *(ones * (length - n) for n in range(4))], axis=-1)
