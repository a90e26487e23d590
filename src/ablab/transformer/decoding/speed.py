"""Decoding speed of models, measured in turns in one process on the same sentences with the same output lengths."""

import math
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ablab.transformer.data.batches import Sentences, like_lengths
from ablab.transformer.decoding.translator import DecodingConfig
from ablab.transformer.model.tokens import EOS
from ablab.transformer.model.transformer import DecoderState, Transformer

ROUNDS = 3
SENTENCES = 120


class Paced(Transformer):
    """A model whose translations all end after `length` tokens; all else is computed as in the original.

    A model pruned too far often never ends a sentence, which would make it seem slow.
    """

    def __init__(self, model: Transformer, length: int) -> None:
        super().__init__(
            model.words,
            model.word_dropout,
            model.source_input,
            model.target_input,
            model.encoder,
            model.decoder,
            model.output_bias,
        )
        self.length = length
        self.train(model.training)

    def step(self, tokens: Int[Tensor, "batch beams"], state: DecoderState) -> Float[Tensor, "batch beams vocab"]:
        """Return logits that forbid end-of-sentence up to `length` tokens, and any other token after that."""
        logits = super().step(tokens, state)
        if state.position <= self.length:
            logits[..., EOS] = -math.inf
        else:
            end = logits[..., EOS].clone()
            logits.fill_(-math.inf)[..., EOS] = end
        return logits


def sentences_per_second(
    models: Sequence[Transformer],
    src: Sentences,
    search: DecodingConfig,
    progress: Callable[[int], None] = lambda _: None,
) -> list[float]:
    """Return each model's sentences per second: the median of `ROUNDS` rounds, after one that warms up.

    All translations of a batch are as long as its longest source, with one decoder step per token.
    """
    seconds: list[list[float]] = [[] for _ in models]
    for turn in range(ROUNDS + 1):
        for model, times in zip(models, seconds, strict=True):
            began = time.perf_counter()
            _translate(model, src, search)
            if turn:
                times.append(time.perf_counter() - began)
            progress(1)
    return [len(src) / statistics.median(times) for times in seconds]


def _translate(model: Transformer, src: Sentences, search: DecodingConfig) -> None:
    device = next(model.parameters()).device
    for rows in like_lengths(src.lengths, search.batch_tokens(device)):
        batch = torch.from_numpy(src.padded(rows)).long().to(device)
        words = batch.size(1) - 1  # without the end, which takes the last step
        search.best(Paced(model, words), batch)
