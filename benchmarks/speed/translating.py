"""One measurement of translating a run's test set, by ablab's search or by CTranslate2 with the same weights.

    python -m benchmarks.speed.translating ablab|float32:2|int8:1 RUN EXPORTED decoding=beam|greedy      one JSON line

`float32:2`: two workers that share the threads. Subword encoding and decoding are counted, loading is not. The hash of
the translations shows whether two states of ablab translate alike.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from ablab.store.finished import FinishedRun
from ablab.store.run_folder import RunFolder
from ablab.tasks.plan import reopened
from ablab.transformer.data.scoring import bleu
from ablab.transformer.data.tokenizer import Tokenizer
from ablab.transformer.decoding.hypotheses import length_penalty
from ablab.transformer.decoding.translator import DecodingConfig, Translator
from ablab.transformer.model.tokens import BOS, PAD
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.stages.models import load_model
from ablab.transformer.translation.evaluate import build_engine, build_search

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))


def main() -> None:
    """Some sentences to warm up, then the whole test set."""
    backend, folder, exported = sys.argv[1], RunFolder(Path(sys.argv[2])), Path(sys.argv[3])
    record = folder.record()
    assert record is not None
    config = reopened(FinishedRun(folder, record), sys.argv[4:]).config
    pairs = config.data.test_split().pairs
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    torch.set_num_threads(THREADS)
    search = build_search(config)
    model, tokenizers = load_model(of_run(folder, record), torch.device("cpu"))
    if backend == "ablab":
        engine = build_engine(config).at_work(Translator(model, tokenizers))

        def translate(some: Sequence[str]) -> list[str]:
            with engine as translator:
                return translator.best(translator.encode(some), search)
    else:
        kind, _, workers = backend.partition(":")
        translate = _ctranslate2(exported / kind, int(workers), tokenizers, search)
    translate(sources[:32])
    began = time.perf_counter()
    found = translate(sources)
    seconds = time.perf_counter() - began
    digest = hashlib.sha256("\n".join(found).encode()).hexdigest()[:12]
    rate = len(sources) / seconds
    print(json.dumps({"sentences_per_second": rate, "bleu": bleu(found, references), "translations": digest}))


def _ctranslate2(
    folder: Path, workers: int, tokenizers: tuple[Tokenizer, Tokenizer], search: DecodingConfig
) -> Callable[[Sequence[str]], list[str]]:
    """CTranslate2 at its fastest with ablab's rules: it stops when ablab does, and its hypotheses are ranked alike.

    Only the limit of length is one for all sentences, so that it can batch them as it likes.
    """
    import ctranslate2

    engine = ctranslate2.Translator(str(folder), inter_threads=workers, intra_threads=max(1, THREADS // workers))
    source, target = tokenizers
    ids = {piece: number for number, piece in enumerate(target.pieces(range(len(target))))}

    def translate(some: Sequence[str]) -> list[str]:
        encoded = source.encode(some)
        results = engine.translate_batch(
            [source.pieces(sentence) for sentence in encoded],
            beam_size=search.beam_size,
            num_hypotheses=search.beam_size,
            length_penalty=WAITS,
            suppress_sequences=[[piece] for piece in target.pieces([PAD, BOS])],
            max_batch_size=4096 // search.beam_size,
            batch_type="tokens",
            max_decoding_length=max(map(len, encoded)) + search.max_extra_tokens + 1,
            return_scores=True,
        )
        return target.decode([[ids[piece] for piece in _best(result, search)] for result in results])

    return translate


WAITS = 1e-30
"""With any length penalty above 0 CTranslate2 waits for `beam_size` ends, as ablab does."""


def _best(result: Any, search: DecodingConfig) -> list[str]:
    scored = zip(result.scores, result.hypotheses, strict=True)
    ranked = [(log_prob / length_penalty(len(one) + 1, search.length_penalty), one) for log_prob, one in scored]
    pieces: list[str] = max(ranked, key=lambda pair: pair[0])[1]
    return pieces


if __name__ == "__main__":
    main()
