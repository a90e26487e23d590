"""What a search returns for one sentence."""

from typing import NamedTuple


class Hypothesis(NamedTuple):
    """Target ids without begin and end; `score` is what the search ranks by, higher is better.

    `score` = `log_prob` / length penalty; `log_prob` is the natural logarithm of the probability of all tokens,
    the end of the sentence included.
    """

    ids: tuple[int, ...]
    score: float
    log_prob: float


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha, `length` with the end of the sentence (Wu et al. 2016, eq. 14). 1 at length 1.

    fairseq divides by length^alpha instead: its 0.6 is not this 0.6.
    """
    return float(((5 + length) / 6) ** alpha)
