"""Batched beam search with GNMT's length penalty."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ablab.transformer.decoding.hypotheses import Ended, Finished, Hypothesis, length_penalty, of_beams
from ablab.transformer.decoding.stopping import length_limits, unfinished
from ablab.transformer.decoding.words import next_words
from ablab.transformer.model.tokens import BOS, EOS
from ablab.transformer.model.transformer import Transformer


@torch.inference_mode()
def beam_search(
    model: Transformer,
    src: Int[Tensor, "batch src_len"],
    *,
    beam_size: int,
    alpha: float,
    max_extra_tokens: int,
) -> list[list[Hypothesis]]:
    """Return up to `beam_size` finished hypotheses per sentence, the best score first.

    A hypothesis finishes when end-of-sentence is among the `beam_size` best continuations of its sentence, and a
    sentence is done at its `beam_size`-th; a beam of 1 is therefore greedy search. At source length +
    `max_extra_tokens` tokens every hypothesis must end. Each sentence is searched independently: the others in its
    batch, and when finished ones leave it, change only rounding.
    """
    limits, most = length_limits(src, max_extra_tokens)
    longest = most + 1
    # Scores are summed over a sentence, in single precision at least.
    dtype = torch.promote_types(next(model.parameters()).dtype, torch.float32)
    beams = _Beams.start(len(src), longest, dtype, src.device)
    finished = Finished.none(len(src), beam_size, longest, dtype, src.device)
    state = model.start(src, beams=beam_size, max_len=longest)
    rows = torch.arange(len(src), device=src.device)  # which sentence each row still searches

    for position in range(longest):
        logits = model.step(beams.last(position), state).to(dtype)
        ended, beams, origin = beams.advance(beam_size, logits, limits[rows] == position, position)
        finished.add(rows, ended, penalty=length_penalty(position + 1, alpha), length=position)
        # Finished sentences stay in the batch until it is compacted, and must not produce hypotheses.
        beams.abandon(finished.full(rows))
        state.follow(origin)
        if (kept := unfinished(beams.going(), position)) is not None:
            if len(kept) == 0:
                break
            state.keep(kept)
            beams, rows = beams.rows(kept), rows[kept]
    return finished.hypotheses()


@dataclass
class _Beams:
    """The unfinished hypotheses of each sentence, the best first; log probability -inf marks an empty beam."""

    log_probs: Float[Tensor, "batch beams"]
    tokens: Int[Tensor, "batch beams longest"]

    @classmethod
    def start(cls, batch: int, longest: int, dtype: torch.dtype, device: torch.device) -> "_Beams":
        """Return one empty hypothesis per sentence."""
        log_probs = torch.zeros(batch, 1, dtype=dtype, device=device)
        return cls(log_probs, torch.full((batch, 1, longest), EOS, device=device))

    def last(self, position: int) -> Int[Tensor, "batch beams"]:
        """Return the decoder's input tokens at `position`."""
        if position == 0:
            return torch.full_like(self.tokens[:, :, 0], BOS)
        return self.tokens[:, :, position - 1]

    def rows(self, kept: Int[Tensor, "kept"]) -> "_Beams":
        """Select the beams of the sentences `kept`."""
        return _Beams(self.log_probs[kept], self.tokens[kept])

    def abandon(self, sentences: Bool[Tensor, "batch"]) -> None:
        """Empty the beams of the sentences where the mask is True, so that they yield no further hypothesis."""
        self.log_probs.masked_fill_(sentences[:, None], -math.inf)

    def going(self) -> Bool[Tensor, "batch"]:
        """Return which sentences have a hypothesis left; if any, the first beam holds one."""
        return self.log_probs[:, 0] > -math.inf

    def advance(
        self, size: int, logits: Float[Tensor, "batch beams vocab"], must_end: Bool[Tensor, "batch"], position: int
    ) -> tuple[Ended, "_Beams", Int[Tensor, "batch size"]]:
        """Return the hypotheses that end at `position`, those that continue, and the beam each of these extends."""
        # At most `size` of 2 * size candidates are ends, one per beam, so `size` others remain. Of one beam, the end
        # and `size` others can be among them.
        wanted, each = 2 * size, min(size + 1, logits.size(2))
        words = next_words(logits, each)
        best = words.log_probs.masked_fill(must_end[:, None, None], -math.inf)
        best[..., 0] = torch.where(must_end[:, None], words.end, best[..., 0])
        tokens = words.tokens.clone()
        tokens[..., 0] = torch.where(must_end[:, None], EOS, tokens[..., 0])
        candidates, tokens = (self.log_probs[:, :, None] + best).flatten(1), tokens.flatten(1)
        if (missing := wanted - candidates.size(1)) > 0:  # of the first token, or of a small vocabulary
            candidates, tokens = F.pad(candidates, (0, missing), value=-math.inf), F.pad(tokens, (0, missing))
        log_probs, index = candidates.topk(wanted, dim=-1)
        origin = (index // each).clamp(max=logits.size(1) - 1)
        token = tokens.gather(1, index)

        is_end = token == EOS
        ended = Ended(log_probs[:, :size].masked_fill(~is_end[:, :size], -math.inf), origin[:, :size], self.tokens)

        # A stable sort keeps the order by probability and puts the ends last.
        going = is_end.int().argsort(dim=1, stable=True)[:, :size]
        origin = origin.gather(1, going)
        grown = of_beams(self.tokens, origin)
        grown[:, :, position] = token.gather(1, going)
        kept = log_probs.masked_fill(is_end, -math.inf).gather(1, going)
        return ended, _Beams(kept, grown), origin
