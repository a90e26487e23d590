"""Whether an exported model says what ours says: greedy translations of both, sentence by sentence."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ablab.data.tokenizer import Tokenizer
from ablab.decoding.translator import Search, Translator
from ablab.files import write_lines
from ablab.formats.translator import CTranslate2Translator
from ablab.model.transformer import Transformer

DIFFERENCES = "differences.tsv"


class Agreement(NamedTuple):
    """How many sentences, those that differ as (source, ours, theirs), and seconds of each engine on one thread."""

    sentences: int
    different: list[tuple[str, str, str]]
    our_seconds: float
    their_seconds: float

    def lines(self) -> list[str]:
        """For people."""
        count = len(self.different)
        where = f": see {DIFFERENCES}" if count else ""
        return [
            f"Greedy translations of {self.sentences:,} test sentences: {count:,} differ from ours{where}",
            f"Seconds: {self.their_seconds:.1f}, ours {self.our_seconds:.1f}",
        ]


def compare(
    model: Transformer,
    tokenizers: tuple[Tokenizer, Tokenizer],
    folder: Path,
    sources: Sequence[str],
    progress: Callable[[int], None] = lambda _: None,
) -> Agreement:
    """Translate with both; the sentences that differ are written beside the exported model."""
    ours = Translator(model, tokenizers)
    began = time.perf_counter()
    mine = ours.best(ours.encode(sources), Search(1, 0.0), progress)
    between = time.perf_counter()
    theirs = CTranslate2Translator(folder).translate(sources)
    progress(len(sources))
    ended = time.perf_counter()
    different = [row for row in zip(sources, mine, theirs, strict=True) if row[1] != row[2]]
    if different:
        rows = [("source", "ours", "exported"), *different]
        write_lines(folder / DIFFERENCES, ("\t".join(row) for row in rows))
    return Agreement(len(sources), different, between - began, ended - between)
