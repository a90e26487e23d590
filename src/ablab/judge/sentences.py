"""Sentences on which two arms differ most: examples of what a difference in BLEU means."""

from pathlib import Path

from ablab.judge.document import SentenceLine, Sentences
from ablab.judge.evidence import pairs
from ablab.judge.runs import ArmRun
from ablab.judge.selection import SelectedArms
from ablab.store.stored_text import stored_text
from ablab.study.study import marked

SHOWN = 6
"""Sentences shown per arm: half of them better than the baseline, half worse."""

LOOKED_AT = 40
"""Candidates at either end, ranked by n-gram precision and then by chrF, which is too slow for every sentence."""

MOST_ARMS = 8


def differing_sentences(selection: SelectedArms) -> list[Sentences]:
    """Return the differing sentences of each arm and the baseline, under the first seed that both have."""
    found = []
    for arm in [arm for arm in selection.rows if arm is not selection.baseline_of(arm)][:MOST_ARMS]:
        baseline = selection.baseline_of(arm)
        both = pairs(arm, baseline)
        if both.arm and (lines := _lines(both.arm[0], both.baseline[0], selection.outputs)):
            arm_marked, baseline_marked = (marked(one.name, one.mark(len(one.finished))) for one in (arm, baseline))
            names = {"arm": arm.name, "arm_marked": arm_marked, "baseline_marked": baseline_marked}
            found.append(Sentences(**names, seed=both.arm[0].seed, lines=lines, baseline=baseline.name))
    return found


def _lines(arm: ArmRun, baseline: ArmRun, outputs: Path) -> list[SentenceLine]:
    if arm.evaluation is None or baseline.evaluation is None:
        return []
    if arm.evaluation.references != baseline.evaluation.references:
        return []
    text = stored_text(outputs, arm.evaluation.references)
    ours, theirs = arm.hypotheses(), baseline.hypotheses()
    if text is None or not len(text.sources) == len(text.references) == len(ours) == len(theirs):
        return []
    gaps = _gaps(arm.evaluation.statistics, baseline.evaluation.statistics)
    unlike = sorted((i for i in range(len(gaps)) if ours[i] != theirs[i]), key=lambda i: gaps[i])
    likely = dict.fromkeys([*unlike[:LOOKED_AT], *unlike[-LOOKED_AT:]])
    scores = {i: _chrf(ours[i], theirs[i], text.references[i]) for i in likely}
    order = sorted(scores, key=lambda i: scores[i][0] - scores[i][1])
    chosen = dict.fromkeys([*order[::-1][: SHOWN // 2], *order[: SHOWN // 2]])
    return [
        SentenceLine(
            number=i + 1,
            source=text.sources[i],
            reference=text.references[i],
            arm_text=ours[i],
            baseline_text=theirs[i],
            arm_score=scores[i][0],
            baseline_score=scores[i][1],
        )
        for i in chosen
    ]


def _gaps(arm: list[list[int]], baseline: list[list[int]]) -> list[float]:
    """Return the arm's n-gram precision less the baseline's, per sentence, from the statistics in the records."""

    def precision(row: list[int]) -> float:
        matches, totals = row[2:6], row[6:10]
        return sum(matches) / max(1, sum(totals))

    return [precision(one) - precision(other) for one, other in zip(arm, baseline, strict=True)]


def _chrf(one: str, other: str, reference: str) -> tuple[float, float]:
    from ablab.transformer.scoring import sentence_chrf

    return sentence_chrf(one, reference), sentence_chrf(other, reference)
