"""Speed of models beside each other: timed in turns in one process, on the same sentences, all output equally long."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ablab.transformer.data.batches import Index, Sentences
from ablab.transformer.decoding.encodings import Twin
from ablab.transformer.decoding.translator import DecodingConfig
from ablab.transformer.model.tokens import EOS
from ablab.transformer.model.transformer import DecoderState, Transformer

SENTENCES = 16
"""Sentences of a timing, in one batch: short turns follow the machine's own ups and downs."""

SHARE = 0.03
"""Share of the time of a run's training that timing its pruned models may take, beyond the fewest turns."""

FEWEST, TRUSTED, MOST = 4, 10, 40
"""Turns: those that are made whatever they take, those from which on their error is trusted, and the most.

The first one warms up, and does not count.
"""

PRECISION = 0.01
"""Standard error of a ratio, as a share of it, at which timing ends: a ratio may be off by twice as much."""


class Timing(NamedTuple):
    """Seconds of each work, medians over `turns` turns.

    `error`: standard error of the ratio of the first one to another, the largest, as a share of the ratio.
    """

    seconds: list[float]
    turns: int
    error: float

    @property
    def told(self) -> dict[str, Any]:
        """What a curve tells of it."""
        return {"rounds": self.turns, "error": self.error}


def in_turns(
    works: Sequence[Callable[[], object]],
    device: torch.device,
    budget: float,
    clock: Callable[[], float] = time.thread_time,
) -> Timing:
    """Time each work in turns, until the ratios are precise or `budget` seconds are over, whichever comes first.

    On a CPU by one thread, as a worker of decoding has one, and by `clock`, its processor time, which other processes
    of the machine change less than the time that passes. Elsewhere by that, so that a work must wait for its result.
    """
    if device.type != "cpu":
        return turns_of(works, budget, time.perf_counter)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return turns_of(works, budget, clock)
    finally:
        torch.set_num_threads(threads)


def turns_of(
    works: Sequence[Callable[[], object]],
    budget: float,
    clock: Callable[[], float],
    now: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Time works in turns by a clock, for `budget` seconds by `now`."""
    turns: list[list[float]] = []
    end = now() + budget
    while len(turns) < FEWEST or (
        now() < end and len(turns) < MOST and (len(turns) < TRUSTED or _error(turns[1:]) > PRECISION)
    ):
        times = [clock()]
        for work in works:
            work()
            times.append(clock())
        turns.append([after - before for before, after in pairwise(times)])
    counted = turns[1:]
    return Timing([statistics.median(column) for column in zip(*counted, strict=True)], len(counted), _error(counted))


def _error(turns: Sequence[Sequence[float]]) -> float:
    """Return the largest standard error of a ratio of medians to the first, as a share of it.

    A median of n normal values has sqrt(pi / 2 n) times their standard deviation, which is their median deviation /
    0.6745: a turn that something disturbed counts as one, however long it was.
    """
    first, *others = (_error_of_median(column) for column in zip(*turns, strict=True))
    return max((math.hypot(first, other) for other in others), default=0.0)


def _error_of_median(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values) / 0.6745
    return math.sqrt(math.pi / 2 / len(values)) * deviation / middle if middle else math.inf


class Paced(Twin):
    """A model whose translations all end after `length` tokens; all else is computed as in the original.

    A model pruned too far often never ends a sentence, which would make it seem slow.
    """

    def __init__(self, model: Transformer, length: int) -> None:
        super().__init__(model)
        self.length = length

    def step(self, tokens: Int[Tensor, "batch beams"], state: DecoderState) -> Float[Tensor, "batch beams vocab"]:
        """Return logits that forbid end-of-sentence up to `length` tokens, and any other token after that."""
        logits = super().step(tokens, state)
        if state.position <= self.length:
            logits[..., EOS] = -math.inf
        else:
            end = logits[..., EOS].clone()
            logits.fill_(-math.inf)[..., EOS] = end
        return logits


def translations_timed(models: Sequence[Transformer], src: Sentences, search: DecodingConfig, budget: float) -> Timing:
    """Time each model's translation of the sentences of middling length among these; `budget`: in seconds.

    They are one batch, and all translations as long as its longest source, with one decoder step per token.
    """
    device = next(models[0].parameters()).device
    batch = torch.from_numpy(src.padded(middling(src.lengths))).long().to(device)
    words = batch.size(1) - 1  # without the end, which takes the last step

    def translating(model: Transformer) -> Callable[[], object]:
        paced = Paced(model, words)
        return lambda: search.best(paced, batch)

    return in_turns([translating(model) for model in models], device, budget)


def middling(lengths: Index) -> Index:
    """Return the `SENTENCES` rows in the middle of the order by length, or all where there are fewer."""
    order = lengths.argsort(kind="stable")
    before = max(0, (len(order) - SENTENCES) // 2)
    return order[before : before + SENTENCES]
