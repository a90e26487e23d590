"""Translation with a model exported to CTranslate2, by our decoding rules as far as it supports them."""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ablab.errors import UserError
from ablab.files import write_lines
from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.tokenizer import Tokenizer, load_tokenizers
from ablab.transformer.decoding.hypotheses import NOTHING, Hypothesis, length_penalty
from ablab.transformer.decoding.speed import Timing, in_turns, middling
from ablab.transformer.decoding.translator import DecodingConfig, Translator
from ablab.transformer.export.ctranslate2 import POSITIONS, Quantization, library, to_ctranslate2
from ablab.transformer.model.tokens import BOS, PAD
from ablab.transformer.model.transformer import Transformer


class CTranslate2Translator:
    """A translator for an exported folder, with our decoding rules as far as CTranslate2 supports them.

    Two things differ. Probabilities are normalised over the words that may be produced; ours over all, padding and
    begin-of-sentence included. And a hypothesis that reaches the length limit is cut there; ours must end there, and
    its score includes the end.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source, self.target = load_tokenizers(folder)
        self._ids = {piece: number for number, piece in enumerate(self.target.pieces(range(len(self.target))))}
        self._engines: dict[int, Any] = {}

    def translate(
        self, sentences: Sequence[str], *, beam_size: int = 1, length_penalty: float = 0.0, threads: int = 1
    ) -> list[str]:
        """Return the best translation of each sentence, computed on the CPU."""
        found = self.hypotheses(
            self.source.encode_text(sentences), DecodingConfig(beam_size, length_penalty), threads=threads
        )
        return self.target.decode([beams[0].ids for beams in found])

    def hypotheses(
        self, sentences: Sequence[Sequence[int]], search: DecodingConfig, *, threads: int = 1
    ) -> list[list[Hypothesis]]:
        """Return all hypotheses of each sentence, the best first. Sentences are given as ids without end-of-sentence.

        Sentences of one length are translated together, since CTranslate2 has one length limit per call.
        """
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for row, ids in enumerate(sentences):
            if ids:
                by_length[len(ids)].append(row)
        for length in by_length:
            if length + search.max_extra_tokens >= POSITIONS:
                most = POSITIONS - 1 - length
                raise UserError(
                    f"max_extra_tokens={search.max_extra_tokens}: a source of {length} subwords may then have a longer "
                    f"translation than the {POSITIONS - 1} that an exported model writes; allowed: "
                    f"{f'up to {most}, or ' if most >= 0 else ''}ablab's own engine"
                )
        # All are submitted at once, so that no worker waits for the last sentence of a length.
        asked = [(rows, length + search.max_extra_tokens) for length, rows in sorted(by_length.items(), reverse=True)]
        engine = self._engine(threads)
        answers = [self._ask(engine, [sentences[row] for row in rows], search, limit) for rows, limit in asked]
        results: dict[int, list[Hypothesis]] = {}
        for (rows, limit), answer in zip(asked, answers, strict=True):
            found = [self._ranked(each.result(), search, limit) for each in answer]
            results.update(zip(rows, found, strict=True))
        return [results.get(row, [NOTHING]) for row in range(len(sentences))]

    def paced(self, sentences: Sequence[Sequence[int]], search: DecodingConfig, length: int) -> None:
        """Translate the sentences on one thread, each into `length` tokens, and forget the translations."""
        for each in self._ask(self._engine(1), sentences, search, length - 1, least=length):
            each.result()

    def _engine(self, threads: int) -> Any:
        """Return an engine of single-threaded workers: two of them are twice as fast as one with two threads.

        To make it sets OpenMP's number of threads of this one to `intra_threads`, also for torch, which shares it.
        """
        if threads not in self._engines:
            before = torch.get_num_threads()
            self._engines[threads] = library().Translator(str(self.folder), inter_threads=threads, intra_threads=1)
            torch.set_num_threads(before)
        return self._engines[threads]

    def _ask(
        self, engine: Any, sentences: Sequence[Sequence[int]], search: DecodingConfig, limit: int, least: int = 0
    ) -> Any:
        """Submit the sentences; return one pending result for each."""
        return engine.translate_batch(
            [self.source.pieces(ids) for ids in sentences],
            beam_size=search.beam_size,
            num_hypotheses=search.beam_size,
            # With any length penalty above 0 CTranslate2 waits for `beam_size` ends, as we do; ours ranks them later.
            length_penalty=1e-30,
            suppress_sequences=[[piece] for piece in self.target.pieces([PAD, BOS])],
            max_batch_size=max(1, 4096 // (search.beam_size * (len(sentences[0]) + 1))),
            max_input_length=0,
            max_decoding_length=limit + 1,
            min_decoding_length=least,
            return_scores=True,
            asynchronous=True,
        )

    def _ranked(self, result: Any, search: DecodingConfig, limit: int) -> list[Hypothesis]:
        found = []
        for pieces, log_prob in zip(result.hypotheses, result.scores, strict=True):
            ids = tuple(self._ids[piece] for piece in pieces[:limit])
            penalty = length_penalty(len(ids) + 1, search.length_penalty)
            found.append(Hypothesis(ids, log_prob / penalty, log_prob))
        kept: dict[tuple[int, ...], Hypothesis] = {}  # what the limit cuts off may be all that tells two of them apart
        for hypothesis in sorted(found, key=lambda hypothesis: hypothesis.score, reverse=True):
            kept.setdefault(hypothesis.ids, hypothesis)
        return list(kept.values())


class ExportedTranslator(Translator):
    """A translator of `translator`'s model in CTranslate2, on as many threads as torch has here."""

    def __init__(self, translator: Translator, engine: CTranslate2Translator) -> None:
        super().__init__(translator.model, (translator.source, translator.target))
        self.engine = engine

    def ids(
        self, src: Sentences, search: DecodingConfig, progress: Callable[[int], None] = lambda _: None
    ) -> list[list[int]]:
        return [list(beams[0].ids) for beams in self.hypotheses(src, search, progress)]

    def hypotheses(
        self, src: Sentences, search: DecodingConfig, progress: Callable[[int], None] = lambda _: None
    ) -> list[list[Hypothesis]]:
        sentences = _without_ends(src, range(len(src)))
        found = self.engine.hypotheses(sentences, search, threads=torch.get_num_threads())
        progress(len(src))
        return found


class CTranslate2Engine:
    """CTranslate2 as the engine of evaluations. Each model is exported for as long as it is used.

    Raises UserError for models with parts that CTranslate2 lacks.
    """

    def __init__(self, quantization: Quantization) -> None:
        self.quantization = quantization

    @property
    def signature(self) -> dict[str, str]:
        return {"engine": f"ctranslate2 {library().__version__} {self.quantization}"}

    @contextmanager
    def at_work(self, translator: Translator) -> Iterator[ExportedTranslator]:
        """Yield a translator in place of `translator`, on as many threads."""
        with tempfile.TemporaryDirectory(prefix="ablab-ctranslate2-") as folder:
            path = Path(folder) / "model"
            tokenizers = (translator.source, translator.target)
            to_ctranslate2(translator.model, tokenizers, path, quantization=self.quantization)
            yield ExportedTranslator(translator, CTranslate2Translator(path))

    def timed(self, translators: Sequence[Translator], src: Sentences, search: DecodingConfig, budget: float) -> Timing:
        """Time it as `translations_timed` times our search: on the same sentences, with translations as long."""
        rows = middling(src.lengths)
        sentences, length = _without_ends(src, rows), int(src.lengths[rows].max())

        def translating(engine: CTranslate2Translator) -> Callable[[], object]:
            return lambda: engine.paced(sentences, search, length)

        with ExitStack() as stack:
            engines = [stack.enter_context(self.at_work(each)).engine for each in translators]
            # Its workers are threads of this process, which waits for them.
            return in_turns([translating(each) for each in engines], torch.device("cpu"), budget, time.process_time)


def _without_ends(src: Sentences, rows: Iterable[int]) -> list[list[int]]:
    return [src.tokens[src.offsets[row] : src.offsets[row + 1] - 1].tolist() for row in rows]


DIFFERENCES = "differences.tsv"


class Agreement(NamedTuple):
    """Number of sentences, those that differ as (source, ours, theirs), and seconds of each engine on one thread.

    `longer`: how many were left out, as an exported model could not write translations of their limit.
    """

    sentences: int
    different: list[tuple[str, str, str]]
    our_seconds: float
    their_seconds: float
    longer: int = 0

    def lines(self) -> list[str]:
        """Return the comparison as lines of text."""
        count = len(self.different)
        where = f": see {DIFFERENCES}" if count else ""
        return [
            f"Greedy translations of {self.sentences:,} test sentences: {count:,} differ from ours{where}",
            f"Seconds: {self.their_seconds:.1f}, ours {self.our_seconds:.1f}",
            *([f"{self.longer:,} longer ones were left out"] if self.longer else []),
        ]


def compare(
    model: Transformer,
    tokenizers: tuple[Tokenizer, Tokenizer],
    folder: Path,
    sources: Sequence[str],
    progress: Callable[[int], None] = lambda _: None,
) -> Agreement:
    """Translate with both engines, and write the sentences that differ beside the exported model."""
    ours, other = Translator(model, tokenizers), CTranslate2Translator(folder)
    search, whole = DecodingConfig(1, 0.0), len(sources)
    lengths = np.diff(ours.encode(sources).offsets)
    sources = [
        text for text, words in zip(sources, lengths, strict=True) if words + search.max_extra_tokens < POSITIONS
    ]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        began = time.perf_counter()
        mine = ours.best(ours.encode(sources), search, progress)
        between = time.perf_counter()
    finally:
        torch.set_num_threads(threads)
    theirs = other.translate(sources)
    progress(len(sources))
    ended = time.perf_counter()
    different = [row for row in zip(sources, mine, theirs, strict=True) if row[1] != row[2]]
    if different:
        rows = [("source", "ours", "exported"), *different]
        write_lines(folder / DIFFERENCES, ("\t".join(row) for row in rows))
    return Agreement(len(sources), different, between - began, ended - between, whole - len(sources))
