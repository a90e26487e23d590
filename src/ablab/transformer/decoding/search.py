"""Greedy search, batched beam search with GNMT's length penalty, the next words in either, and when a search stops."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ablab.transformer.decoding.hypotheses import Ended, Finished, Hypothesis, length_penalty, of_beams
from ablab.transformer.model.tokens import BOS, EOS, PAD
from ablab.transformer.model.transformer import Transformer

COMPACT_BELOW = 0.8
"""Share of unfinished sentences below which the finished are dropped; to compact a batch is to copy, too."""

COUNT_EVERY = 8
"""Steps after which a search on another device than the CPU counts the unfinished sentences, for which it waits."""

FORBIDDEN = slice(PAD, BOS + 1)
"""Padding and begin-of-sentence, which are neighbours: a list of them would be copied to the device at each step."""

WIDTH = 64
"""Words per group. The best words lie in the groups with the largest maxima, so that few have to be sorted."""


@torch.inference_mode()
def greedy(model: Transformer, src: Int[Tensor, "batch src_len"], *, max_extra_tokens: int) -> list[list[int]]:
    """Return the target ids of each sentence without BOS and EOS, at most source length + `max_extra_tokens` ids."""
    limits, longest = length_limits(src, max_extra_tokens)
    state = model.start(src, beams=1, max_len=longest + 1)
    rows = torch.arange(len(src), device=src.device)  # which sentence each row still decodes
    alive = torch.ones_like(rows, dtype=torch.bool)
    last = torch.full((len(src), 1), BOS, device=src.device)
    output = torch.full((len(src), longest + 1), EOS, device=src.device)

    for position in range(output.size(1)):
        logits = forbid(model.step(last, state)[:, 0])
        token = logits.argmax(dim=-1).masked_fill(limits[rows] == position, EOS).masked_fill(~alive, EOS)
        output[rows, position] = token
        alive &= token != EOS
        last = token[:, None]
        if (kept := unfinished(alive, position)) is not None:
            if len(kept) == 0:
                break
            state.keep(kept)
            rows, last, alive = rows[kept], last[kept], alive[kept]
    return [sentence[: sentence.index(EOS)] if EOS in sentence else sentence for sentence in output.tolist()]


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


def length_limits(src: Int[Tensor, "batch src_len"], max_extra_tokens: int) -> tuple[Int[Tensor, "batch"], int]:
    """Return the most target tokens of each sentence, source tokens + `max_extra_tokens`, and of all of them.

    The end of the sentence is not among them.
    """
    limits = ((src != PAD) & (src != EOS)).sum(dim=1) + max_extra_tokens
    return limits, int(limits.max())


def unfinished(going: Bool[Tensor, "rows"], position: int) -> Int[Tensor, "kept"] | None:
    """Return the rows of a batch that a search keeps after its step at `position`: those `going` on, or none.

    None instead of rows: all stay for now, since too few have ended, or since the search does not count at this step.
    """
    if not counts_after(position, going.device):
        return None
    left = int(going.sum())
    if left and left >= COMPACT_BELOW * len(going):
        return None
    return going.nonzero()[:, 0]


def counts_after(position: int, device: torch.device) -> bool:
    """Return whether a search counts the unfinished sentences after its step at `position`: always, on the CPU."""
    return device.type == "cpu" or (position + 1) % COUNT_EVERY == 0


class NextWords(NamedTuple):
    """The `count` likeliest words of each hypothesis, the best first, and the end of the sentence."""

    log_probs: Float[Tensor, "batch beams count"]
    tokens: Int[Tensor, "batch beams count"]
    end: Float[Tensor, "batch beams"]


def forbid(logits: Float[Tensor, "*batch vocab"]) -> Float[Tensor, "*batch vocab"]:
    """Exclude padding and begin-of-sentence as the next token. Changes `logits` in place."""
    logits[..., FORBIDDEN] = -math.inf
    return logits


def next_words(logits: Float[Tensor, "batch beams vocab"], count: int) -> NextWords:
    """Return natural logarithms of the model's own probabilities: those of forbidden words count in their sum.

    `count` is at most the size of the vocabulary. Destroys `logits`: a copy would cost as much as all else here.
    """
    forbidden, end = logits[..., FORBIDDEN].clone(), logits[..., EOS].clone()
    best, tokens = largest(forbid(logits), count)
    most = torch.maximum(best[..., :1], forbidden.amax(dim=-1, keepdim=True))
    total = logits.sub_(most).exp_().sum(dim=-1, keepdim=True) + (forbidden - most).exp().sum(dim=-1, keepdim=True)
    normaliser = most + total.log()
    return NextWords(best - normaliser, tokens, end - normaliser[..., 0])


def largest(
    values: Float[Tensor, "*batch vocab"], count: int
) -> tuple[Float[Tensor, "*batch count"], Int[Tensor, "*batch count"]]:
    """Return the `count` largest values, the largest first, and their indices, as `topk` does, but faster."""
    vocab, groups = values.size(-1), values.size(-1) // WIDTH
    if groups <= count:
        return values.topk(count, dim=-1)
    grouped = values[..., : groups * WIDTH].unflatten(-1, (groups, WIDTH))
    chosen = grouped.amax(dim=-1).topk(count, dim=-1).indices[..., None]
    of_groups = grouped.gather(-2, chosen.expand(*chosen.shape[:-1], WIDTH)).flatten(-2)
    indices = (chosen * WIDTH + torch.arange(WIDTH, device=values.device)).flatten(-2)
    rest = torch.arange(groups * WIDTH, vocab, device=values.device).expand(*values.shape[:-1], -1)
    best, places = torch.cat([of_groups, values[..., groups * WIDTH :]], dim=-1).topk(count, dim=-1)
    return best, torch.cat([indices, rest], dim=-1).gather(-1, places)
