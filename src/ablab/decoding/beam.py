"""Beam search with GNMT's length penalty, for a batch of sentences at once."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ablab.decoding.hypothesis import Hypothesis, length_penalty
from ablab.decoding.limits import forbid, length_limits
from ablab.model.tokens import BOS, EOS
from ablab.model.transformer import DecoderState, Transformer

COMPACT_BELOW = 0.8  # as in greedy search


@torch.inference_mode()
def beam_search(
    model: Transformer,
    src: Int[Tensor, "batch src_len"],
    *,
    beam_size: int,
    alpha: float,
    max_extra_tokens: int,
) -> list[list[Hypothesis]]:
    """Up to `beam_size` finished hypotheses of each sentence, the best score first.

    An end of sentence counts when it is among the `beam_size` best continuations of its sentence, and a sentence
    is done with its `beam_size`-th; so a beam of 1 is greedy search. At source length + `max_extra_tokens`
    tokens every hypothesis must end.
    """
    limits = length_limits(src, max_extra_tokens)
    longest = int(limits.max()) + 1
    # Scores add up over a sentence: never in less than single precision.
    dtype = torch.promote_types(next(model.parameters()).dtype, torch.float32)
    beams = _Beams.start(len(src), beam_size, longest, dtype, src.device)
    finished = _Finished.none(len(src), beam_size, longest, dtype, src.device)
    state = model.start(src, beams=beam_size, max_len=longest)
    rows = torch.arange(len(src), device=src.device)  # which sentence each row still searches

    for position in range(longest):
        logits = model.step(beams.last(position), state).to(dtype)
        must_end = limits[rows] == position
        ended, beams, origin = beams.advance(logits, must_end, position)
        if bool((ended.log_probs > -math.inf).any()):
            finished.add(rows, ended, penalty=length_penalty(position + 1, alpha), length=position)
        going = (finished.count(rows) < beam_size) & ~must_end
        left = int(going.sum())
        if left == 0:
            break
        _follow(state, origin)
        if left < COMPACT_BELOW * len(rows):
            kept = going.nonzero()[:, 0]
            state.keep(kept)
            beams, rows = beams.rows(kept), rows[kept]
    return finished.hypotheses()


def _follow(state: DecoderState, origin: Int[Tensor, "batch beams"]) -> None:
    """Give every hypothesis the past of the one it continues; most steps of a beam of 1 need no copy."""
    batch, beams = origin.shape
    if beams > 1:
        state.reorder((torch.arange(batch, device=origin.device)[:, None] * beams + origin).flatten())


@dataclass
class _Ended:
    """Hypotheses that end at this step, per sentence; log probability -inf: none."""

    log_probs: Float[Tensor, "batch beams"]
    tokens: Int[Tensor, "batch beams longest"]


@dataclass
class _Beams:
    """The unfinished hypotheses of each sentence, the best first."""

    log_probs: Float[Tensor, "batch beams"]
    tokens: Int[Tensor, "batch beams longest"]

    @classmethod
    def start(cls, batch: int, beams: int, longest: int, dtype: torch.dtype, device: torch.device) -> "_Beams":
        """One empty hypothesis per sentence; the other beams come from its continuations."""
        log_probs = torch.full((batch, beams), -math.inf, dtype=dtype, device=device)
        log_probs[:, 0] = 0.0
        return cls(log_probs, torch.full((batch, beams, longest), EOS, device=device))

    def last(self, position: int) -> Int[Tensor, "batch beams"]:
        """What the decoder reads at `position`."""
        if position == 0:
            return torch.full_like(self.tokens[:, :, 0], BOS)
        return self.tokens[:, :, position - 1]

    def rows(self, kept: Int[Tensor, "kept"]) -> "_Beams":
        """Those of some sentences."""
        return _Beams(self.log_probs[kept], self.tokens[kept])

    def advance(
        self, logits: Float[Tensor, "batch beams vocab"], must_end: Tensor, position: int
    ) -> tuple[_Ended, "_Beams", Int[Tensor, "batch beams"]]:
        """What ends here, what goes on, and which beam each of the latter continues."""
        _batch, size, vocab = logits.shape
        # Of 2 * size candidates at most `size` are ends, so `size` others remain.
        wanted, each = 2 * size, min(2 * size, vocab)
        # Before anything is forbidden: scores are the model's own probabilities.
        normaliser = logits.logsumexp(dim=-1, keepdim=True)
        logits = forbid(logits)
        if bool(must_end.any()):
            no_word = torch.full_like(logits, -math.inf)
            no_word[..., EOS] = logits[..., EOS]
            logits = torch.where(must_end[:, None, None], no_word, logits)
        best, tokens = logits.topk(each, dim=-1)
        candidates = (self.log_probs[:, :, None] + best - normaliser).flatten(1)
        log_probs, index = candidates.topk(wanted, dim=-1)
        origin = index // each
        token = tokens.flatten(1).gather(1, index)

        is_end = token == EOS
        past = self.tokens.gather(1, origin[:, :, None].expand(-1, -1, self.tokens.size(2)))
        ended = _Ended(log_probs[:, :size].masked_fill(~is_end[:, :size], -math.inf), past[:, :size])

        # A stable sort keeps the order by probability and puts the ends last.
        going = is_end.int().argsort(dim=1, stable=True)[:, :size]
        grown = past.gather(1, going[:, :, None].expand(-1, -1, past.size(2)))
        grown[:, :, position] = token.gather(1, going)
        kept = log_probs.masked_fill(is_end, -math.inf).gather(1, going)
        return ended, _Beams(kept, grown), origin.gather(1, going)


@dataclass
class _Finished:
    """The best finished hypotheses of every sentence of the batch, and their lengths without the end."""

    scores: Float[Tensor, "batch beams"]
    log_probs: Float[Tensor, "batch beams"]
    lengths: Int[Tensor, "batch beams"]
    tokens: Int[Tensor, "batch beams longest"]

    @classmethod
    def none(cls, batch: int, beams: int, longest: int, dtype: torch.dtype, device: torch.device) -> "_Finished":
        """No hypothesis has ended yet."""
        nothing = torch.full((batch, beams), -math.inf, dtype=dtype, device=device)
        lengths = torch.zeros((batch, beams), dtype=torch.long, device=device)
        return cls(nothing, nothing.clone(), lengths, torch.full((batch, beams, longest), EOS, device=device))

    def add(self, rows: Int[Tensor, "rows"], ended: _Ended, *, penalty: float, length: int) -> None:
        """Keep the best `beams` of the old and the new, in each of the sentences `rows`."""
        beams = self.scores.size(1)
        scores = torch.cat([self.scores[rows], ended.log_probs / penalty], dim=1)
        self.scores[rows], best = scores.topk(beams, dim=1)
        log_probs = torch.cat([self.log_probs[rows], ended.log_probs], dim=1)
        self.log_probs[rows] = log_probs.gather(1, best)
        new_lengths = torch.full_like(self.lengths[rows], length)
        self.lengths[rows] = torch.cat([self.lengths[rows], new_lengths], dim=1).gather(1, best)
        tokens = torch.cat([self.tokens[rows], ended.tokens], dim=1)
        self.tokens[rows] = tokens.gather(1, best[:, :, None].expand(-1, -1, tokens.size(2)))

    def count(self, rows: Int[Tensor, "rows"]) -> Int[Tensor, "rows"]:
        """How many have ended, in each of the sentences `rows`."""
        return (self.scores[rows] > -math.inf).sum(dim=1)

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Plain values, the best first; beams that never ended are left out."""
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
