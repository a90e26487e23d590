"""Sentences on which two arms differ most: examples of what a difference in a score means."""

from ablab.judge.document import SentenceLine, Sentences
from ablab.judge.evidence import pairs
from ablab.judge.runs import ArmRun
from ablab.judge.selection import SelectedArms
from ablab.study.study import marked

MOST_ARMS = 8


def differing_sentences(selection: SelectedArms) -> list[Sentences]:
    """Return the differing sentences of each arm and the baseline, under the first seed that both have."""
    found = []
    for arm in [arm for arm in selection.rows if arm is not selection.baseline_of(arm)][:MOST_ARMS]:
        baseline = selection.baseline_of(arm)
        both = pairs(arm, baseline)
        if both.arm and (lines := _lines(selection, both.arm[0], both.baseline[0])):
            arm_marked, baseline_marked = (marked(one.name, one.mark(len(one.finished))) for one in (arm, baseline))
            names = {"arm": arm.name, "arm_marked": arm_marked, "baseline_marked": baseline_marked}
            found.append(Sentences(**names, seed=both.arm[0].seed, lines=lines, baseline=baseline.name))
    return found


def _lines(selection: SelectedArms, arm: ArmRun, baseline: ArmRun) -> list[SentenceLine]:
    if arm.evaluation is None or baseline.evaluation is None:
        return []
    evaluations, texts = (arm.evaluation, baseline.evaluation), (arm.hypotheses(), baseline.hypotheses())
    return [SentenceLine(**one._asdict()) for one in selection.task.differing(evaluations, texts, selection.outputs)]
