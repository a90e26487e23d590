"""One measurement of translating a run's test set, by ablab's search or by CTranslate2 with the same weights.

    python -m benchmarks.speed.translating ablab|float32:2|int8:1 RUN EXPORTED      one JSON line

`float32:2`: two workers that share the threads. Subword encoding and decoding are counted, loading is not.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from ablab.build import build_search, load_model
from ablab.data.tokenizer import Tokenizer
from ablab.decoding.translator import Translator
from ablab.plan import reopened
from ablab.scoring import bleu
from ablab.store.finished import FinishedRun
from ablab.store.run_folder import RunFolder
from ablab.store.saved_model import of_run

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
    model, tokenizers = load_model(of_run(folder, record), torch.device("cpu"))
    if backend == "ablab":
        translator, search = Translator(model, tokenizers), build_search(config)

        def translate(some: Sequence[str]) -> list[str]:
            return translator.best(translator.encode(some), search)
    else:
        kind, _, workers = backend.partition(":")
        translate = _ctranslate2(exported / kind, kind, int(workers), tokenizers)
    translate(sources[:32])
    began = time.perf_counter()
    found = translate(sources)
    seconds = time.perf_counter() - began
    print(json.dumps({"sentences_per_second": len(sources) / seconds, "bleu": bleu(found, references)}))


def _ctranslate2(
    folder: Path, kind: str, workers: int, tokenizers: tuple[Tokenizer, Tokenizer]
) -> Callable[[Sequence[str]], list[str]]:
    import ctranslate2

    engine = ctranslate2.Translator(
        str(folder), compute_type=kind, inter_threads=workers, intra_threads=max(1, THREADS // workers)
    )
    source, target = tokenizers
    ids = {piece: number for number, piece in enumerate(target.pieces(range(len(target))))}

    def translate(some: Sequence[str]) -> list[str]:
        pieces = [[*source.pieces(sentence), "</s>"] for sentence in source.encode(some)]
        results = engine.translate_batch(
            pieces, beam_size=4, length_penalty=0.6, max_batch_size=64, batch_type="examples"
        )
        return target.decode([[ids[piece] for piece in result.hypotheses[0]] for result in results])

    return translate


if __name__ == "__main__":
    main()
