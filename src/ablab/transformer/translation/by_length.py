"""Quality by length of the source, from what an evaluation stored: no model translates again; without torch."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ablab.store.artefacts import Axis, SeriesArtefact, Trace
from ablab.transformer.data.scoring import corpus_bleu, score

MOST_BUCKETS = 6

FEWEST = 50
"""Sentences of a bucket, where there are as many: the BLEU of fewer says little."""


class Bucket(NamedTuple):
    """Sentences whose sources have `low` to `high` units. `rows`: their numbers."""

    low: int
    high: int
    rows: list[int]

    @property
    def name(self) -> str:
        """Its lengths, and the number of its sentences."""
        lengths = str(self.low) if self.low == self.high else f"{self.low}-{self.high}"
        return f"{lengths}\nn={len(self.rows):,}"


def lengths(sources: Sequence[str]) -> tuple[str, list[int]]:
    """Return the unit, and the length of each source in it: independent of any tokenizer, so that arms agree.

    Words between spaces; characters where most sources are one word, as in Chinese.
    """
    words = [len(source.split()) for source in sources]
    if 2 * sum(count <= 1 for count in words) > len(words):
        return "characters", [len(source.strip()) for source in sources]
    return "words", words


def buckets(sizes: Sequence[int]) -> list[Bucket]:
    """Divide sentences by length into at most `MOST_BUCKETS` of about equal numbers; equal lengths stay together.

    Every sentence is in exactly one bucket, and none of several has fewer than `FEWEST` sentences.
    """
    total, counts = len(sizes), sorted(Counter(sizes).items())
    number = max(1, min(MOST_BUCKETS, total // FEWEST))
    spans: list[tuple[int, int]] = []
    held, before, low = 0, 0, counts[0][0]
    for size, count in counts:
        held += count
        is_full = held >= (len(spans) + 1) * total / number and min(held - before, total - held) >= FEWEST
        if is_full or held == total:
            spans.append((low, size))
            before, low = held, size + 1
    return [Bucket(*span, [row for row, size in enumerate(sizes) if span[0] <= size <= span[1]]) for span in spans]


METRICS = {"bleu": "BLEU", "chrf": "chrF"}
"""Metrics by the names of their artefacts. BLEU needs the evaluation alone, chrF the translations too."""


def by_length(
    metric: str,
    sources: Sequence[str],
    references: Sequence[str],
    hypotheses: Sequence[str],
    statistics: Sequence[Sequence[float]],
) -> SeriesArtefact:
    """Return corpus BLEU or corpus chrF within each bucket.

    `statistics`: the evaluation's sufficient statistics of BLEU, whose sums over a bucket give its BLEU as sacrebleu
    scores it. chrF has none stored: sacrebleu scores the bucket's stored translations.
    """
    unit, sizes = lengths(sources)
    parts, counts = buckets(sizes), np.array(statistics)

    def scored(rows: Sequence[int]) -> float:
        if metric == "bleu":
            return float(corpus_bleu(counts[rows].sum(axis=0)))
        return score([hypotheses[row] for row in rows], [references[row] for row in rows]).chrf

    return SeriesArtefact(
        title=f"Test {METRICS[metric]} by length of the source",
        section="Quality by length",
        order=list(METRICS).index(metric),
        about=f"Corpus scores of the test sentences whose source has so many {unit}; n: their number. Exploratory: no "
        "claim is about a bucket, length goes with much else, and scores of few sentences vary.",
        x=Axis(title=f"{unit} of the source, and number of sentences n"),
        y=Axis(title=METRICS[metric]),
        series=[
            Trace(
                label=METRICS[metric],
                x=[float(place) for place in range(1, len(parts) + 1)],
                y=[round(scored(part.rows), 4) for part in parts],
                names=[part.name for part in parts],
            )
        ],
    )
