"""Hypotheses of a search, the length penalty, and the finished hypotheses of a batch."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ablab.transformer.model.tokens import EOS


class Hypothesis(NamedTuple):
    """A finished translation: target ids without BOS and EOS, and its score, by which the search ranks.

    `score` = `log_prob` / length penalty, higher is better; `log_prob` is the natural logarithm of the probability of
    all tokens, including the end of the sentence.
    """

    ids: tuple[int, ...]
    score: float
    log_prob: float


NOTHING = Hypothesis((), 0.0, 0.0)
"""The translation of a sentence without words, which is certain."""


def length_penalty(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^alpha; `length` includes the end of the sentence (Wu et al. 2016, eq. 14).

    It is 1 at length 1.

    fairseq divides by length^alpha instead: its 0.6 is not this 0.6.
    """
    return float(((5 + length) / 6) ** alpha)


def of_beams(
    tokens: Int[Tensor, "batch beams longest"], beams: Int[Tensor, "batch chosen"]
) -> Int[Tensor, "batch chosen longest"]:
    """Return the tokens of the chosen beams of each sentence."""
    return tokens.gather(1, beams[:, :, None].expand(-1, -1, tokens.size(2)))


@dataclass
class Ended:
    """The hypotheses of each sentence that end at this step; their tokens are the beams `origin` of `tokens`.

    Log probability -inf marks a beam that does not end.
    """

    log_probs: Float[Tensor, "batch beams"]
    origin: Int[Tensor, "batch beams"]
    tokens: Int[Tensor, "batch before longest"]

    def sentences(self) -> Int[Tensor, "some"]:
        """Return the indices of the sentences with a hypothesis that ends; of all where counting would be waiting."""
        if self.log_probs.device.type != "cpu":
            return torch.arange(len(self.log_probs), device=self.log_probs.device)
        return (self.log_probs > -math.inf).any(dim=1).nonzero()[:, 0]


@dataclass
class Finished:
    """The best finished hypotheses of every sentence of a batch, the best first. `lengths` exclude the end."""

    scores: Float[Tensor, "batch beams"]
    log_probs: Float[Tensor, "batch beams"]
    lengths: Int[Tensor, "batch beams"]
    tokens: Int[Tensor, "batch beams longest"]

    @classmethod
    def none(cls, batch: int, beams: int, longest: int, dtype: torch.dtype, device: torch.device) -> "Finished":
        """Return the initial state, without a finished hypothesis."""
        nothing = torch.full((batch, beams), -math.inf, dtype=dtype, device=device)
        lengths = torch.zeros((batch, beams), dtype=torch.long, device=device)
        return cls(nothing, nothing.clone(), lengths, torch.full((batch, beams, longest), EOS, device=device))

    def add(self, rows: Int[Tensor, "rows"], ended: Ended, *, penalty: float, length: int) -> None:
        """Keep the best of the old and new hypotheses of the sentences `rows`; of equals, the one that ended first.

        A sentence in which no hypothesis ends is not touched, so that the order of its ties does not depend on others.
        """
        some = ended.sentences()
        if len(some) == 0:
            return
        rows, log_probs = rows[some], ended.log_probs[some]
        scores = torch.cat([self.scores[rows], log_probs / penalty], dim=1)
        best = scores.argsort(dim=1, descending=True, stable=True)[:, : self.scores.size(1)]
        self.scores[rows] = scores.gather(1, best)
        self.log_probs[rows] = torch.cat([self.log_probs[rows], log_probs], dim=1).gather(1, best)
        lengths = self.lengths[rows]
        self.lengths[rows] = torch.cat([lengths, torch.full_like(lengths, length)], dim=1).gather(1, best)
        ended_tokens = of_beams(ended.tokens[some], ended.origin[some])
        self.tokens[rows] = of_beams(torch.cat([self.tokens[rows], ended_tokens], dim=1), best)

    def full(self, rows: Int[Tensor, "rows"]) -> Bool[Tensor, "rows"]:
        """Return which of the sentences `rows` have as many finished hypotheses as beams."""
        return self.scores[rows, -1] > -math.inf

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the hypotheses as plain values, the best first; empty places are left out."""
        values = zip(
            self.tokens.tolist(),
            self.lengths.tolist(),
            self.scores.tolist(),
            self.log_probs.tolist(),
            strict=True,
        )
        return [
            [
                Hypothesis(tuple(ids[:length]), score, log_prob)
                for ids, length, score, log_prob in zip(*sentence, strict=True)
                if score > -math.inf
            ]
            for sentence in values
        ]
