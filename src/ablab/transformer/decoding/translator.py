"""Translation of sentences in batches of similar length, with results in the original order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TypeVar

import torch

from ablab.transformer.data.batches import Index, Sentences, like_lengths
from ablab.transformer.data.tokenizer import Tokenizer
from ablab.transformer.decoding.hypotheses import NOTHING, Hypothesis
from ablab.transformer.decoding.search import beam_search, greedy
from ablab.transformer.model.modes import evaluating
from ablab.transformer.model.transformer import Transformer

Job = TypeVar("Job")
Result = TypeVar("Result")

BATCH_TOKENS, ELSEWHERE = 4096, 65_536
"""Source positions times beams per batch, on the CPU and on other devices, which a small batch leaves idle.

Batching does not change translations.
"""


def spread(work: Callable[[Job], Result], jobs: Sequence[Job], device: torch.device) -> Iterator[tuple[Job, Result]]:
    """Yield each job with its result, in the order of completion.

    The matrix products of one decoding step are too small for two threads to share: two workers with a thread each are
    faster than one with two. PyTorch releases Python's lock while it computes, so workers can be threads that share
    the model. A job's result does not depend on its worker. On one core, for one job or on a GPU, jobs run in turn.
    """
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1 or len(jobs) < 2:
        yield from ((job, work(job)) for job in jobs)
        return
    with ThreadPoolExecutor(min(threads, len(jobs)), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            futures = {pool.submit(work, job): job for job in jobs}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)  # a caller that stops early waits for the running jobs alone
            # Threads created later would inherit the number that a worker has set.
            torch.set_num_threads(threads)


@dataclass(frozen=True)
class DecodingConfig:
    """Settings of the search for translations; a beam of 1 is greedy search."""

    beam_size: int = 1
    length_penalty: float = 0.0
    max_extra_tokens: int = 50

    def run(self, model: Transformer, src: torch.Tensor) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence of a padded batch, the best first."""
        return beam_search(
            model,
            src,
            beam_size=self.beam_size,
            alpha=self.length_penalty,
            max_extra_tokens=self.max_extra_tokens,
        )

    def best(self, model: Transformer, src: torch.Tensor) -> list[list[int]]:
        """Return the ids of each sentence's best translation, by greedy search if `beam_size` is 1."""
        if self.beam_size == 1:
            return greedy(model, src, max_extra_tokens=self.max_extra_tokens)
        return [list(beams[0].ids) if beams else [] for beams in self.run(model, src)]

    def cut(self, sources: Iterable[int], translations: Iterable[Sequence[int]]) -> int:
        """Return how many translations reached the length limit; `sources`: words of each source, without its end.

        Few of them were at their end.
        """
        lengths = zip(sources, map(len, translations), strict=True)
        return len([words for words, length in lengths if words and length >= words + self.max_extra_tokens])

    def batch_tokens(self, device: torch.device) -> int:
        """Return the most source positions per batch."""
        return (BATCH_TOKENS if device.type == "cpu" else ELSEWHERE) // self.beam_size


class Translator:
    """Translates text with a model and its two tokenizers.

    Each call puts the model in evaluation mode and restores its mode afterwards.
    """

    def __init__(self, model: Transformer, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
        self.model = model
        self.source, self.target = tokenizers

    def best(
        self, src: Sentences, search: DecodingConfig, progress: Callable[[int], None] = lambda _: None
    ) -> list[str]:
        """Return the best translation of each encoded sentence, as text."""
        return self.target.decode(self.ids(src, search, progress))

    def ids(
        self, src: Sentences, search: DecodingConfig, progress: Callable[[int], None] = lambda _: None
    ) -> list[list[int]]:
        """Return the ids of the best translation of each encoded sentence."""
        nothing: list[int] = []
        return self._in_order(src, search, search.best, nothing, progress)

    def hypotheses(
        self, src: Sentences, search: DecodingConfig, progress: Callable[[int], None] = lambda _: None
    ) -> list[list[Hypothesis]]:
        """Return all hypotheses of each encoded sentence, the best first."""
        return self._in_order(src, search, search.run, [NOTHING], progress)

    def texts(self, hypotheses: Sequence[Hypothesis]) -> list[tuple[float, str]]:
        """Return the score and text of each hypothesis."""
        texts = self.target.decode([hypothesis.ids for hypothesis in hypotheses])
        return [(hypothesis.score, text) for hypothesis, text in zip(hypotheses, texts, strict=True)]

    def encode(self, sentences: Sequence[str]) -> Sentences:
        """Encode source sentences; a blank one becomes end-of-sentence alone, and has an empty translation."""
        return Sentences.of(self.source.encode_text(sentences))

    def _in_order(
        self,
        src: Sentences,
        search: DecodingConfig,
        find: Callable[[Transformer, torch.Tensor], Sequence[Result]],
        of_nothing: Result,
        progress: Callable[[int], None],
    ) -> list[Result]:
        """Return what is found of each sentence; `of_nothing` of one without words, for which no model is asked."""
        device = next(self.model.parameters()).device
        asked = (src.lengths > 1).nonzero()[0]
        results: dict[int, Result] = {}

        def translate(rows: Index) -> Sequence[Result]:
            return find(self.model, torch.from_numpy(src.padded(rows)).long().to(device))

        with evaluating(self.model):
            batches = [asked[rows] for rows in like_lengths(src.lengths[asked], search.batch_tokens(device))]
            for rows, found in spread(translate, batches, device):
                results.update(zip(rows.tolist(), found, strict=True))
                progress(len(rows))
        progress(len(src) - len(asked))
        return [results.get(row, of_nothing) for row in range(len(src))]
