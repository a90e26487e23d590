"""Sentences on which two arms differ most: what a difference in BLEU looks like to a reader."""

from pathlib import Path

from ablab.report.document import SentenceLine, Sentences
from ablab.report.evidence import pairs
from ablab.report.selection import Run, Selection

SHOWN = 6
"""Of each arm: half of them better than the baseline, half worse."""

MOST_ARMS = 8


def differing_sentences(selection: Selection) -> list[Sentences]:
    """Of each arm against the baseline, under the first seed that both have."""
    baseline = selection.arm(selection.baseline)
    assert baseline is not None
    found = []
    for arm in [arm for arm in selection.arms if arm is not baseline][:MOST_ARMS]:
        both = pairs(arm, baseline)
        if both.arm and (lines := _lines(both.arm[0], both.baseline[0], selection.outputs / "corpora")):
            found.append(Sentences(arm=arm.name, seed=both.arm[0].seed, lines=lines))
    return found


def _lines(arm: Run, baseline: Run, corpora: Path) -> list[SentenceLine]:
    if arm.evaluation is None or baseline.evaluation is None:
        return []
    if arm.evaluation.references != baseline.evaluation.references:
        return []
    text = _text(corpora / arm.evaluation.references)
    ours, theirs = arm.hypotheses(), baseline.hypotheses()
    if text is None or not len(text[0]) == len(text[1]) == len(ours) == len(theirs):
        return []
    scores = [_chrf(a, b, reference) for a, b, reference in zip(ours, theirs, text[1], strict=True)]
    order = sorted(range(len(scores)), key=lambda i: scores[i][0] - scores[i][1])
    unlike = [i for i in order if ours[i] != theirs[i]]
    chosen = dict.fromkeys([*unlike[::-1][: SHOWN // 2], *unlike[: SHOWN // 2]])
    return [
        SentenceLine(
            number=i + 1,
            source=text[0][i],
            reference=text[1][i],
            arm_text=ours[i],
            baseline_text=theirs[i],
            arm_score=scores[i][0],
            baseline_score=scores[i][1],
        )
        for i in chosen
    ]


def _text(folder: Path) -> tuple[list[str], list[str]] | None:
    files = [folder / name for name in ("sources.txt", "references.txt")]
    if not all(file.exists() for file in files):
        return None
    sources, references = (file.read_text(encoding="utf-8").split("\n")[:-1] for file in files)
    return sources, references


def _chrf(one: str, other: str, reference: str) -> tuple[float, float]:
    from sacrebleu.metrics import CHRF

    metric = CHRF()
    ours, theirs = (metric.sentence_score(text, [reference]).score for text in (one, other))
    return ours, theirs
