"""What is computed again from the stored texts of an evaluation: its scores, and examples of where two differ."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ablab.store.records import Evaluation
from ablab.store.run_folder import RunFolder
from ablab.store.shared import stored_text
from ablab.tasks.task import TOLERANCE, Example
from ablab.transformer.data.scoring import Scoring, score, sentence_chrf

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
    if again.signatures != evaluation.signatures:
        yield f"scored as {evaluation.signatures} {where}, here it would be {again.signatures}"
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


def _gaps(arm: Sequence[Sequence[float]], baseline: Sequence[Sequence[float]]) -> list[float]:
    """Return the arm's n-gram precision less the baseline's, per sentence, from the statistics in the records."""

    def precision(row: Sequence[float]) -> float:
        matches, totals = row[2:6], row[6:10]
        return sum(matches) / max(1, sum(totals))

    return [precision(one) - precision(other) for one, other in zip(arm, baseline, strict=True)]
