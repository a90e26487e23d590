"""What the stored texts of an evaluation tell, without torch: its scores, differences, and quality by length."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ablab.store.artefacts import Axis, SeriesArtefact, Trace
from ablab.store.records import Evaluation
from ablab.store.run_folder import RunFolder
from ablab.store.shared import stored_text
from ablab.tasks.task import TOLERANCE, Example
from ablab.transformer.data.scoring import Scoring, corpus_bleu, score, sentence_chrf

SHOWN = 6
"""Examples shown: half of them better than the other, half worse."""

LOOKED_AT = 40
"""Candidates at either end, ranked by n-gram precision and then by chrF, which is too slow for every sentence."""


def scored_again(evaluation: Evaluation, folder: RunFolder) -> Iterator[str]:
    """Yield where BLEU, chrF and statistics on record are not those of the texts. A test loss would need the model."""
    text, hypotheses = stored_text(folder.outputs, evaluation.references), folder.hypotheses(evaluation.evaluation_id)
    if text is None:
        yield f"its references are gone (corpora/{evaluation.references})"
    elif len(text.references) != len(hypotheses):
        yield f"{len(hypotheses)} hypotheses for {len(text.references)} references in {evaluation.evaluation_id}"
    else:
        yield from _differences(evaluation, hypotheses, text.references)


def _differences(evaluation: Evaluation, hypotheses: Sequence[str], references: Sequence[str]) -> Iterator[str]:
    again = score(hypotheses, references, Scoring(**evaluation.settings.get("scoring", {})))
    where, scores = f"in {evaluation.evaluation_id}", evaluation.scores
    signatures = {name: evaluation.signatures.get(name) for name in again.signatures}  # there may be an engine's, too
    if again.signatures != signatures:
        yield f"scored as {signatures} {where}, here it would be {again.signatures}"
    for name, there, here in (("BLEU", scores["bleu"], again.bleu), ("chrF", scores["chrf"], again.chrf)):
        if abs(there - here) > TOLERANCE:
            yield f"{name} {there:.6f} on record {where}, {here:.6f} from its hypotheses"
    if evaluation.items["bleu"] != again.sentences:
        yield f"its statistics per sentence {where} are not those of its hypotheses"


def differing(
    evaluations: tuple[Evaluation, Evaluation], texts: tuple[Sequence[str], Sequence[str]], outputs: Path
) -> list[Example]:
    """Return the sentences on which two evaluations of one test set differ most, each side's translations given."""
    (arm, baseline), (ours, theirs) = evaluations, texts
    text = stored_text(outputs, arm.references) if arm.references == baseline.references else None
    if text is None or not len(text.sources) == len(text.references) == len(ours) == len(theirs):
        return []
    gaps = _gaps(arm.items["bleu"], baseline.items["bleu"])
    unlike = sorted((i for i in range(len(gaps)) if ours[i] != theirs[i]), key=lambda i: gaps[i])
    likely = dict.fromkeys([*unlike[:LOOKED_AT], *unlike[-LOOKED_AT:]])
    scores = {i: tuple(sentence_chrf(one[i], text.references[i]) for one in (ours, theirs)) for i in likely}
    order = sorted(scores, key=lambda i: scores[i][0] - scores[i][1])
    chosen = dict.fromkeys([*order[::-1][: SHOWN // 2], *order[: SHOWN // 2]])
    return [Example(i + 1, text.sources[i], text.references[i], ours[i], theirs[i], *scores[i]) for i in chosen]


def samples(evaluation: Evaluation, folder: RunFolder, most: int) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """Return test sentences, evenly from the whole set, with their translations and chrF; none where texts are gone."""
    text, hypotheses = stored_text(folder.outputs, evaluation.references), folder.hypotheses(evaluation.evaluation_id)
    if text is None or len(text.sources) != len(hypotheses):
        return (), ()
    pairs = list(zip(text.sources, text.references, hypotheses, strict=True))
    shown = sorted({place * len(pairs) // most for place in range(most)})
    columns = ("number", "source", "reference", "translation", "chrF")
    return columns, [(i + 1, *pairs[i], round(sentence_chrf(pairs[i][2], pairs[i][1]), 2)) for i in shown]


def _gaps(arm: Sequence[Sequence[float]], baseline: Sequence[Sequence[float]]) -> list[float]:
    """Return the arm's n-gram precision less the baseline's, per sentence, from the statistics in the records."""

    def precision(row: Sequence[float]) -> float:
        matches, totals = row[2:6], row[6:10]
        return sum(matches) / max(1, sum(totals))

    return [precision(one) - precision(other) for one, other in zip(arm, baseline, strict=True)]


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
"""Metrics by the names of their artefacts."""

WITHOUT_TEXTS = ("bleu",)
"""Those that need the evaluation alone, and no translations."""


def by_length(
    metric: str,
    sources: Sequence[str],
    references: Sequence[str],
    hypotheses: Sequence[str],
    items: Mapping[str, Sequence[Sequence[float]]],
) -> SeriesArtefact:
    """Return corpus BLEU or corpus chrF within each bucket.

    `items`: of the evaluation; with the sufficient statistics of BLEU, whose sums over a bucket give its BLEU as
    sacrebleu scores it. chrF has none stored: sacrebleu scores the bucket's stored translations.
    """
    unit, sizes = lengths(sources)
    parts, counts = buckets(sizes), np.array(items["bleu"])

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
